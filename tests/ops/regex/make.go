// Golden values of regular expressions, made with Go's package regexp, whose syntax and answers are RE2's: tests/ops/regex_test.cc holds ours
// to them.
//
//	go run make.go > cases.json
//
// Each case is a pattern, whether it is one at all, texts, whether they match as a whole, and the texts with the first and with all matches
// rewritten. Patterns are drawn from a grammar, or are its edges by hand; texts from the letters that patterns use.
package main

import (
	"encoding/json"
	"math/rand"
	"os"
	"regexp"
	"strconv"
	"strings"
)

type Case struct {
	Pattern string   `json:"pattern"`
	Good    bool     `json:"good"`
	Rewrite string   `json:"rewrite"`
	Texts   []string `json:"texts,omitempty"`
	Whole   []bool   `json:"whole,omitempty"`
	First   []string `json:"first,omitempty"`
	All     []string `json:"all,omitempty"`
}

var random = rand.New(rand.NewSource(12))

func pick(from ...string) string { return from[random.Intn(len(from))] }

func atom(depth int) string {
	switch random.Intn(12) {
	case 0:
		return pick(".", "^", "$", `\b`, `\B`, `\A`, `\z`)
	case 1:
		return pick(`\d`, `\D`, `\w`, `\W`, `\s`, `\S`)
	case 2:
		return pick("[ab]", "[^ab]", "[a-c]", "[^a-c1]", "[[:alpha:]]", "[[:^digit:]x]", `[\w-]`, `[\]a]`, "[]a]", "[a-]", "[äß-ö]", "[a-c-e]", `[\x{e4}b]`)
	case 3:
		if depth > 0 {
			return "(" + alternatives(depth-1) + ")"
		}
	case 4:
		if depth > 0 {
			return "(?" + pick(":", "i:", "s:", "m:", "U:", "i-s:", "im:") + alternatives(depth-1) + ")"
		}
	case 5:
		return pick(`\.`, `\x61`, `\n`, `\t`, `\Qa.b\E`, `\141`, `\-`, `\_`, "ä", "(?i)", "ß", "日")
	}
	return pick("a", "b", "c", "A", "1", " ", "ab", "ba")
}

func sequence(depth int) string {
	made := ""
	for n := random.Intn(4); n >= 0; n-- {
		made += atom(depth)
		if random.Intn(3) == 0 && !strings.HasSuffix(made, "(?i)") {
			made += pick("*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}")
		}
	}
	return made
}

func alternatives(depth int) string {
	made := sequence(depth)
	for random.Intn(3) == 0 {
		made += "|" + sequence(depth)
		if random.Intn(6) == 0 {
			made += "|"
		}
	}
	return made
}

func text() string {
	made := ""
	for n := random.Intn(9); n > 0; n-- {
		made += pick("a", "b", "c", "A", "B", "1", " ", "\n", "-", ".", "_", "ä", "Ä", "ß", "日", "x", "ab", "]", "ſ", "K")
	}
	return made
}

// As RE2's GlobalReplace: an empty match where the last one ended does not count. Go's ReplaceAll does the same.
func rewritten(of *regexp.Regexp, rewrite, text string, all bool) string {
	made, at := "", 0
	count := 1
	if all {
		count = -1
	}
	for _, places := range of.FindAllStringSubmatchIndex(text, count) {
		made += text[at:places[0]]
		for i := 0; i < len(rewrite); i++ {
			if rewrite[i] != '\\' {
				made += rewrite[i : i+1]
				continue
			}
			i++
			if rewrite[i] == '\\' {
				made += "\\"
			} else if g := int(rewrite[i] - '0'); places[2*g] >= 0 {
				made += text[places[2*g]:places[2*g+1]]
			}
		}
		at = places[1]
	}
	return made + text[at:]
}

func add(cases *[]Case, pattern string, texts ...string) {
	one := Case{Pattern: pattern}
	of, err := regexp.Compile(pattern)
	one.Good = err == nil
	if one.Good {
		one.Rewrite = `<\0>`
		if of.NumSubexp() > 0 {
			one.Rewrite = `<\` + strconv.Itoa(1+random.Intn(min(of.NumSubexp(), 9))) + `\\>`
		}
		whole := regexp.MustCompile(`\A(?:` + pattern + `)\z`)
		for n := 0; n < 4; n++ {
			texts = append(texts, text())
		}
		for _, t := range texts {
			one.Texts = append(one.Texts, t)
			one.Whole = append(one.Whole, whole.MatchString(t))
			one.First = append(one.First, rewritten(of, one.Rewrite, t, false))
			one.All = append(one.All, rewritten(of, one.Rewrite, t, true))
		}
	}
	*cases = append(*cases, one)
}

func main() {
	var cases []Case
	for _, pattern := range []string{
		"", "a*", "(|a)*", "(a*)*", "(a|b)*?c", "(a*)+", "(?:)*", "^*", "(^)*a", "x*", "(a)|b", "(a|ab)(c|bcd)(d*)", "(?U)a+", "(?U)a+?",
		"a{0}", "a{2}{3}", "a**", "a*+", "*a", "a|*", "(", ")", "(a", "a)", "[a", "[]", "[^]", "[b-a]", "[a-\\d]", "\\", "\\1", "\\8", "\\q",
		"(?P<n>a)", "(?<n>a)", "(?P<n>a)(?P<n>b)", "(?P<n-m>a)", "(?P<>a)", "(?=a)", "(?!a)", "(?<=a)", "(?i-)", "(?)", "(?:a", "(?z)a", "a{1001}",
		"a{2,1}", "a{,2}", "a{", "a{1", "a{1,", "(a{100}){11}", "(a{30}){30}", "\\x{110000}", "\\x{1F600}", "\\x4", "\\07", "\\377", "[[:foo:]]",
		"[[:word:]]+", "[[:ascii:]]+", "(?i)straße", "(?i)[k]", "(?i)[^k]", "(?i)s", "(?i)\\W", "(?i)[\\W]", "(?i)[[:upper:]]", "(?s).", "(?m)^a$", "a$", "\\Qa*\\E", "a\\Q\\E*",
		"\\E", "(a)(b)(c)(a)(b)(c)(a)(b)(c)(a)", "\\pX", "日+", "[^\\x00-\\x{10FFFF}]", "\\a\\f\\v", "a\\b", "\\ba\\b", "(a?)(a?)(a?)aaa", "((a)|b)*",
		"(?i:a)B", "(?i)a(?-i)B", "(a(?i)b|c)d", "a(?i)b|C",
	} {
		add(&cases, pattern, "", "a", "aaa", "abcd", "aab", "ab\nba", "Straße STRASSE ſ K k", "日日本", "a.b*")
	}
	for len(cases) < 700 {
		add(&cases, alternatives(2), "")
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, one := range cases {
		if err := out.Encode(one); err != nil {
			panic(err)
		}
	}
}
