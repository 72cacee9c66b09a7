package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// groups are the groups of flags that help shows last.
var groups = []kong.Group{
	{Key: "database", Title: "Flags of the database, or variables such as PARTNERAPI_DATABASE_URL:"},
	{Key: "all", Title: "Flags of all commands:"},
}

// briefHelp returns the help of a flag or an argument: the text of its tag brief or, without one, kong's text.
func briefHelp(flag *kong.Value) string {
	if brief := flag.Tag.Get("brief"); brief != "" {
		return brief
	}
	return kong.DefaultHelpValueFormatter(flag)
}

// addExamples adds the command lines of the tag example to the help of each command, and sets the group of --help.
func addExamples(to *kong.Application) {
	to.HelpFlag.Group = &groups[1] // the flags of all commands
	for _, command := range to.Leaves(true) {
		if lines := command.Tag.Get("example"); lines != "" {
			command.Detail += "\n\nExamples:\n\n\tpartnerapi " + strings.ReplaceAll(lines, "\n", "\n\tpartnerapi ")
		}
	}
}
