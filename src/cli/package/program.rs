//! The program in a bundle, and which system and processor it was built for, by the header of its
//! file.

use std::path::Path;

use super::platform::BundlePlatform;
use crate::config::variables;
use crate::error::Failure;

/// The program that a bundle holds.
pub(super) struct BundledProgram {
    pub(super) bytes: Vec<u8>,
    pub(super) platform: BundlePlatform,
    /// Processor of the program; `None` for a script.
    pub(super) processor: Option<&'static str>,
}

impl BundledProgram {
    /// Reads the program at a path, else the one that runs. A script says nothing of its system,
    /// which must then be given.
    ///
    /// # Errors
    /// It cannot be read, is not a program, or is for another system than the given one.
    pub(super) fn read(
        path: Option<&Path>,
        given: Option<BundlePlatform>,
    ) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => variables::running_program().map_err(Failure::setting)?,
        };
        let shown = path.display();
        let bytes = std::fs::read(&path)
            .map_err(|error| Failure::Io(format!("the binary `{shown}` cannot be read"), error))?;
        let is_script = bytes.starts_with(b"#!");
        let (platform, processor) = match (program_target(&bytes), given) {
            (Some(target), None) => (target.platform, Some(target.processor)),
            (Some(target), Some(given)) if target.platform == given => {
                (given, Some(target.processor))
            }
            (Some(target), Some(given)) => {
                return Err(Failure::setting(format!(
                    "--platform {}: the binary `{shown}` is for {}; --binary names one for {0}",
                    given.manifest_name(),
                    target.platform.manifest_name(),
                )));
            }
            (None, Some(given)) if is_script => (given, None),
            (None, None) if is_script => {
                return Err(Failure::setting(format!(
                    "`{shown}` is a script; --platform says for which system the bundle is"
                )));
            }
            (None, _) => {
                return Err(Failure::setting(format!(
                    "`{shown}` is not a program for Linux, macOS or Windows; --binary names the openapi-mcp binary itself, not an archive of it"
                )));
            }
        };
        Ok(Self {
            bytes,
            platform,
            processor,
        })
    }

    /// The end of a bundle's name: one for each target.
    pub(super) fn suffix(&self) -> String {
        let platform = self.platform.manifest_name();
        self.processor.map_or_else(
            || platform.to_owned(),
            |processor| format!("{platform}-{processor}"),
        )
    }
}

/// Target for which a program was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProgramTarget {
    platform: BundlePlatform,
    /// Processor as Node.js names it; `universal` for a Mac program that holds several.
    processor: &'static str,
}

/// The target of a program in the format of Linux (ELF), macOS (Mach-O) or Windows (PE); nothing
/// for other bytes.
fn program_target(bytes: &[u8]) -> Option<ProgramTarget> {
    let little = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let wide = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (platform, processor) = match bytes.get(..4)? {
        b"\x7fELF" => {
            let processor = match little(18)? {
                0x3e => "x64",
                0xb7 => "arm64",
                _ => "other",
            };
            (BundlePlatform::Linux, processor)
        }
        [b'M', b'Z', ..] => {
            let header = usize::try_from(wide(0x3c)?).ok()?;
            let is_program = bytes.get(header..)?.starts_with(b"PE\0\0");
            let processor = match little(header.checked_add(4)?)? {
                0x8664 => "x64",
                0xaa64 => "arm64",
                _ => "other",
            };
            is_program.then_some((BundlePlatform::Win32, processor))?
        }
        [0xcf, 0xfa, 0xed, 0xfe] => {
            let processor = match wide(4)? {
                0x0100_0007 => "x64",
                0x0100_000c => "arm64",
                _ => "other",
            };
            (BundlePlatform::Darwin, processor)
        }
        // A file of Java begins with the same bytes, and with a version above 40 at the position of
        // the number of programs here.
        [0xca, 0xfe, 0xba, 0xbe]
            if bytes
                .get(4..8)
                .is_some_and(|count| matches!(count, [0, 0, 0, 1..=16])) =>
        {
            (BundlePlatform::Darwin, "universal")
        }
        _ => return None,
    };
    Some(ProgramTarget {
        platform,
        processor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes at their offsets, with zeros between them.
    fn header(parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 128];
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        bytes
    }

    #[test]
    fn the_header_of_a_program_names_its_system_and_processor() {
        use BundlePlatform::{Darwin, Linux, Win32};
        let elf = |machine: u8| header(&[(0, b"\x7fELF"), (18, &[machine, 0])]);
        let pe = |machine: &[u8]| {
            header(&[
                (0, b"MZ"),
                (0x3c, &[0x40]),
                (0x40, b"PE\0\0"),
                (0x44, machine),
            ])
        };
        let mach = |kind: u8| header(&[(0, &[0xcf, 0xfa, 0xed, 0xfe, kind, 0, 0, 1])]);
        for (bytes, expected) in [
            (elf(0x3e), Some((Linux, "x64"))),
            (elf(0xb7), Some((Linux, "arm64"))),
            (elf(0xf3), Some((Linux, "other"))),
            (pe(&[0x64, 0x86]), Some((Win32, "x64"))),
            (pe(&[0x64, 0xaa]), Some((Win32, "arm64"))),
            (mach(0x07), Some((Darwin, "x64"))),
            (mach(0x0c), Some((Darwin, "arm64"))),
            (
                vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 2],
                Some((Darwin, "universal")),
            ),
            (vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52], None),
            (
                header(&[(0, b"MZ"), (0x3c, &[0xff, 0xff, 0xff, 0xff])]),
                None,
            ),
            (b"\x7fELF".to_vec(), None),
            (b"MZ".to_vec(), None),
            (b"#!/bin/sh\n".to_vec(), None),
            (Vec::new(), None),
        ] {
            let found = program_target(&bytes).map(|target| (target.platform, target.processor));
            assert_eq!(found, expected, "{:?}", &bytes[..bytes.len().min(8)]);
        }
        let own =
            program_target(&std::fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
        assert!(!own.processor.is_empty() && cfg!(target_os = "linux") == (own.platform == Linux));
    }
}
