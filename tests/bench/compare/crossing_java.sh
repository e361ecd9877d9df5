#!/bin/sh
# crossing_java.sh FOLDER BUILD: builds the Java binding (into BUILD/java) and CrossingJava; FOLDER/run_crossing then runs it. libdtg comes
# from pkg-config.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
build=$(cd "$2" && pwd)
(cd "$here/../../../bindings/java" && mvn -B -q -DskipTests -Ddtg.build.dir="$build/java" package) >&2
javac -cp "$build/java/dtg-0.1.0.jar" -d "$folder/java" "$here/CrossingJava.java"
printf 'exec java -cp "%s:%s:%s" CrossingJava\n' "$build/java/dtg-0.1.0.jar" "$build/java/dtg-0.1.0-linux-x86_64.jar" "$folder/java" >"$folder/run_crossing"
