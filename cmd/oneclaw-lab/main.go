// Command oneclaw-lab tries and measures the bot without any service: its commands are in
// internal/lab.
package main

import (
	"oneclaw/internal/cli"
	"oneclaw/internal/lab"
)

// version is set by the linker in a release.
var version = "devel"

func main() { cli.Main(lab.Root, version) }
