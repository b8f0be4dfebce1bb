// Command oneclaw-lab tests and measures the bot without real platforms. Its commands are in package
// internal/lab.
package main

import (
	"oneclaw/internal/cli"
	"oneclaw/internal/lab"
)

// version is set by the linker in a release.
var version = "devel"

func main() { cli.Main(lab.Root, version) }
