//! Finds libdtg: where `DTG_LIB_DIR` says, otherwise through pkg-config. Nothing is downloaded and nothing is built.
//!
//! | variable          | meaning                                                                          |
//! |-------------------|----------------------------------------------------------------------------------|
//! | `DTG_LIB_DIR`     | the folder of libdtg.so or libdtg.a; pkg-config is not asked                     |
//! | `DTG_INCLUDE_DIR` | the folder that holds dtg/dtg.h; default: `include` beside `DTG_LIB_DIR`         |
//! | `DTG_STATIC`      | 1: link libdtg.a into the program (with the C++ runtime, OpenSSL and zlib)       |
//!
//! Dependents find the headers in `DEP_DTG_INCLUDE`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::exit;

/// While the major version is 0, a minor version may change the ABI: exactly this one will do.
const AT_LEAST: &str = "0.1";
const BELOW: &str = "0.2";

fn main() {
    for name in ["DTG_LIB_DIR", "DTG_INCLUDE_DIR", "DTG_STATIC"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("DOCS_RS").is_some() {
        return; // documentation links nothing
    }
    let fixed = env::var("DTG_STATIC").is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    let include = match env::var_os("DTG_LIB_DIR") {
        Some(folder) => from_folder(Path::new(&folder), fixed),
        None => from_pkg_config(fixed),
    };
    if let Some(include) = include {
        println!("cargo:include={}", include.display());
        println!("cargo:rustc-env=DTG_INCLUDE={}", include.display());
    }
}

/// Says what is wrong and what to do, and ends the build. A panic would bury that under its own words.
fn give_up(reason: &str) -> ! {
    eprintln!("\ndtg-sys: {reason}\n");
    exit(1)
}

fn from_folder(folder: &Path, fixed: bool) -> Option<PathBuf> {
    let file = folder.join(if fixed { "libdtg.a" } else { "libdtg.so" });
    if !file.exists() {
        give_up(&format!(
            "DTG_LIB_DIR is {}, but there is no {} in it.\nSet it to the lib folder of an installed dtg (`make install PREFIX=...` makes one), \
             or unset it to ask pkg-config.",
            folder.display(),
            file.file_name().unwrap_or_default().to_string_lossy()
        ));
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
    if fixed {
        println!("cargo:rustc-link-lib=static=dtg");
        for library in ["ssl", "crypto", "z", "stdc++", "m", "pthread"] {
            println!("cargo:rustc-link-lib={library}");
        }
    } else {
        println!("cargo:rustc-link-lib=dtg");
    }
    let include = env::var_os("DTG_INCLUDE_DIR").map(PathBuf::from).or_else(|| Some(folder.parent()?.join("include")))?;
    include.join("dtg/dtg.h").exists().then_some(include)
}

fn from_pkg_config(fixed: bool) -> Option<PathBuf> {
    let found = pkg_config::Config::new().range_version(AT_LEAST..BELOW).statik(fixed).probe("dtg");
    match found {
        Ok(library) => {
            if fixed {
                // The C++ runtime stands in Libs.private, which pkg-config gives back without an order that a linker could rely on.
                println!("cargo:rustc-link-lib=stdc++");
            }
            library.include_paths.into_iter().find(|folder| folder.join("dtg/dtg.h").exists())
        }
        Err(error) => give_up(&format!(
            "libdtg {AT_LEAST} was not found: {error}\n\
             Install it (`make install PREFIX=...` in the dtg repository) and let PKG_CONFIG_PATH name PREFIX/lib/pkgconfig,\n\
             or set DTG_LIB_DIR to the folder of libdtg.so."
        )),
    }
}
