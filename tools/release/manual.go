package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// manualHead is the beginning of the manual page, and manualTail its end. Between them stand the commands and flags.
const (
	manualHead = `%% PARTNERAPI 1 "%s" "partnerapi %s" "Partner API"

# NAME

partnerapi - partner API of a security awareness training service

# SYNOPSIS

**partnerapi** *COMMAND* [*FLAG*]... [*ARGUMENT*]...

# DESCRIPTION

Managed service providers manage the clients, users, training and simulated phishing of the service through its API. **partnerapi serve** serves it from a PostgreSQL database. The other commands create partners and API keys, import and export, and check the configuration.

**partnerapi** *COMMAND* **--help** describes a command. /usr/share/doc/partnerapi/docs/operating.md is the handbook.

Most flags can be set by a variable of the environment. A flag goes before the environment, and the environment before /etc/partnerapi/partnerapi.env.

`
	manualTail = `
# FILES

/etc/partnerapi/partnerapi.env
: The settings of the services, a variable each. A command that is called by hand uses them too and says so, unless its flags or the environment choose a database (**--database-url**, **--data-dir**, **--demo**). Root runs it as the user partnerapi.

/var/lib/partnerapi
: The data directory of the services.

# EXIT STATUS

0
: The command succeeded.

1
: It failed.

2
: The command line is invalid.
`
)

var (
	// removableMark matches what marks lines of documents that go with version 1.
	removableMark = regexp.MustCompile(`[ \t]*<!--.*?-->`)
	// flagRow matches the row of a flag in docs/flags.md, with its variable and its description.
	flagRow = regexp.MustCompile("(?m)^\\| `([^`]+)`(?:, `([^`]+)`)? \\| (.*) \\|$")
	// tableHead matches the head of a table there.
	tableHead = regexp.MustCompile(`(?m)^\| flag \| \|\n\|---\|---\|\n`)
	// usageBlock matches the usage of a command there.
	usageBlock = regexp.MustCompile("(?s)```text\n(.*?)\n```")
)

// manual returns the manual page, compressed: the commands and flags of docs/flags.md.
func (r *release) manual() ([]byte, error) {
	flags, err := r.read("docs/flags.md")
	if err != nil {
		return nil, err
	}
	_, text, found := strings.Cut(string(flags), "\n## Flags of most commands\n")
	if !found {
		return nil, fmt.Errorf("docs/flags.md does not begin with the flags of most commands")
	}
	text = tableHead.ReplaceAllString(removableMark.ReplaceAllString(text, ""), "")
	text = strings.ReplaceAll(text, "<", `\<`) // of arguments, which are no HTML
	text = usageBlock.ReplaceAllString(text, "**$1**")
	text = flagRow.ReplaceAllStringFunc(text, func(row string) string {
		m := flagRow.FindStringSubmatch(row)
		term := "**" + m[1] + "**"
		if m[2] != "" {
			term += ", " + m[2]
		}
		return term + "\n: " + strings.ReplaceAll(m[3], `\|`, "|") + "\n"
	})
	head := fmt.Sprintf(manualHead, r.time.Format("January 2006"), strings.TrimPrefix(r.version, "v"))
	page := md2man.Render([]byte(head + "# FLAGS OF MOST COMMANDS\n" + strings.Replace(text, "\n## ", "\n# COMMANDS\n\n## ", 1) + manualTail))
	return compressed(page)
}

// compressed returns data as gzip writes it without a name and a time.
func compressed(data []byte) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zipped.Write(data); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
