package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// groups are the groups of flags that help of all commands shows last.
var groups = []kong.Group{
	{Key: "database", Title: "Database flags, also as variables such as PARTNERAPI_DATABASE_URL:"},
	{Key: "all", Title: "Flags of all commands:"},
}

// firstFlags are the flags that help of a process shows first, in this order: those that one needs to begin with.
var firstFlags = []string{"listen", "data-dir", "database-url", "release", "public-url", "demo"}

// processGroups are the groups of the other flags of a process. A flag belongs to the first group that has a beginning of
// its name.
var processGroups = []struct {
	kong.Group
	beginnings []string
}{
	{kong.Group{Key: "emails", Title: "Emails:"}, []string{"smtp-", "mail-", "workers", "scanner-", "learner-"}},
	{kong.Group{Key: "secrets", Title: "Secrets and reports:"}, []string{"encryption-", "report-"}},
	{kong.Group{Key: "outside", Title: "Webhooks and directories:"}, []string{"webhook-", "microsoft-", "google-"}},
	{kong.Group{Key: "callers", Title: "Callers and AI assistants:"}, []string{"trusted-", "support-", "mcp-"}},
	{kong.Group{Key: "several", Title: "Multiple processes and cells:"}, []string{"no-work", "no-migrate", "redis-", "connections", "drain", "cell"}},
	{kong.Group{Key: "watching", Title: "Logs, metrics and the clock:"}, []string{"log-", "metrics-", "accept-clock"}},
}

// groupFlags sorts the flags of a process into firstFlags, which are in no group, those of the command alone, and
// processGroups.
func groupFlags(command *kong.Node) {
	rank := func(f *kong.Flag) int {
		if i := slices.Index(firstFlags, f.Name); i >= 0 {
			return i
		}
		for i, g := range processGroups {
			if slices.ContainsFunc(g.beginnings, func(b string) bool { return strings.HasPrefix(f.Name, b) }) {
				return len(firstFlags) + 1 + i
			}
		}
		return len(firstFlags)
	}
	slices.SortStableFunc(command.Flags, func(a, b *kong.Flag) int { return cmp.Compare(rank(a), rank(b)) })
	for _, f := range command.Flags {
		if r := rank(f); r < len(firstFlags) {
			f.Group = nil
		} else if r > len(firstFlags) {
			f.Group = &processGroups[r-len(firstFlags)-1].Group
		}
	}
}

// briefHelp returns the help of a flag or an argument: the text of its tag brief or, without one, kong's text.
func briefHelp(flag *kong.Value) string {
	if brief := flag.Tag.Get("brief"); brief != "" {
		return brief
	}
	return kong.DefaultHelpValueFormatter(flag)
}

// addExamples adds the command lines of the tag example to the help of each command, and sets the groups of --help and
// of the flags of processes.
func addExamples(to *kong.Application) {
	to.HelpFlag.Group = &groups[1] // the flags of all commands
	for _, command := range to.Leaves(true) {
		if command.Parent == to.Node && slices.Contains([]string{"serve", "work", "doctor"}, command.Name) {
			groupFlags(command)
		}
		if lines := command.Tag.Get("example"); lines != "" {
			command.Detail += "\n\nExamples:\n\n\tpartnerapi " + strings.ReplaceAll(lines, "\n", "\n\tpartnerapi ")
		}
	}
}
