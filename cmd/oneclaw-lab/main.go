// Command oneclaw-lab tries and measures the bot of this module without any service: its
// commands are those of internal/lab.
package main

import (
	"oneclaw/internal/cli"
	"oneclaw/internal/lab"
)

// version is set by the linker in a release.
var version = "devel"

func main() { cli.Main(lab.Root, version) }
