package retire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// Outcome is whether a condition of v1's end is met.
type Outcome string

// The outcomes.
const (
	Met     Outcome = "met"
	Unmet   Outcome = "unmet"   // v1 cannot end
	Warning Outcome = "warning" // v1 can end, but that may surprise someone
)

// Condition is an item of the checklist of v1's end.
type Condition struct {
	Name    string  `json:"condition"`
	Outcome Outcome `json:"outcome"`
	// Found is a clause without a full stop.
	Found string `json:"found"`
	// Details name the keys, operations or partners concerned.
	Details []string `json:"details"`
	// Commands help; empty if the condition is met.
	Commands []string `json:"commands"`
}

// EndRequest is the input of ending v1: the facts that may forbid it, and whether to force it.
type EndRequest struct {
	// Missing are the operations of v1 without a successor in the served release of v2. Release is the first release
	// that has all of them; empty if unknown.
	Missing []string
	Release string
	// Calls are the last calls of the keys that called v1 within CallerWindow.
	Calls []usage.LastCall
	// Unnotified are the partners that were never notified of the end of v1, out of Partners.
	Unnotified []Unnotified
	Partners   int
	// Force ends v1 despite Calls.
	Force bool
}

// Unnotified is a partner that was never notified of the end of v1.
type Unnotified struct {
	Name string
	// NoAdmin means that the partner has no owner or admin to notify.
	NoAdmin bool
}

// CallerWindow is how long after a key's last call v1 cannot be ended without Force.
const CallerWindow = 30 * 24 * time.Hour

// maxCommands is the maximum number of partners for which a condition has its own command.
const maxCommands = 3

// Checklist returns the conditions of v1's end at a time, which End requires and v1 status shows (decisions 11.6).
func (s *State) Checklist(e EndRequest, now time.Time) []Condition {
	return []Condition{s.sunsetReached(now), s.twelveMonths(now), s.noCalls(e), s.allSuccessors(e), s.allNotified(e, now)}
}

// CheckEnd returns the error with which End refuses at a time, which has every reason; nil if v1 can end.
func (s *State) CheckEnd(e EndRequest, now time.Time) error {
	if _, err := s.requireAnnouncement(); err != nil {
		return err
	}
	reasons := ""
	for _, c := range s.Checklist(e, now) {
		if c.Outcome == Unmet {
			reasons += "\n  " + c.String()
		}
	}
	if reasons != "" {
		return errors.New("version 1 cannot end:" + reasons)
	}
	return nil
}

// String formats the condition for an operator, with the lines after the first indented.
func (c Condition) String() string {
	text := c.Found
	for _, d := range c.Details {
		text += "\n    " + d
	}
	for _, command := range c.Commands {
		text += "\n    → " + command
	}
	return text
}

// condition returns a condition, which is met without commands.
func condition(name string, otherwise Outcome, found string, commands ...string) Condition {
	c := Condition{Name: name, Outcome: Met, Found: found, Details: []string{}, Commands: append([]string{}, commands...)}
	if len(commands) > 0 {
		c.Outcome = otherwise
	}
	return c
}

// announceCommand returns the command that announces the end of v1 for the first possible day.
func announceCommand(now time.Time) string {
	return "partnerapi v1 announce --sunset " + twelveMonthsAfter(now).Format(time.DateOnly)
}

// sunsetReached is met from the sunset on.
func (s *State) sunsetReached(now time.Time) Condition {
	const name = "sunset reached"
	switch a := s.Announcement; {
	case a == nil:
		return condition(name, Unmet, "the end of version 1 is not announced", announceCommand(now))
	case now.Before(a.Sunset):
		return condition(name, Unmet, "the sunset is on "+FormatTime(a.Sunset)+"; run the command then", "partnerapi v1 end")
	default:
		return condition(name, Unmet, "the sunset was on "+FormatTime(a.Sunset))
	}
}

// twelveMonths is met twelve months after the announcement.
func (s *State) twelveMonths(now time.Time) Condition {
	const name = "twelve months' notice"
	a := s.Announcement
	if a == nil {
		return condition(name, Unmet, "the twelve months' notice has not begun", announceCommand(now))
	}
	if first := twelveMonthsAfter(a.Announced); now.Before(first) {
		return condition(name, Unmet, fmt.Sprintf("the end was announced on %s, less than twelve months ago; run the command on %s",
			FormatTime(a.Announced), FormatTime(first)), "partnerapi v1 end")
	}
	return condition(name, Unmet, "the end was announced on "+FormatTime(a.Announced)+", at least twelve months ago")
}

// noCalls is met if no key called v1 within CallerWindow. With Force, calls are a warning.
func (s *State) noCalls(e EndRequest) Condition {
	const name = "no calls in 30 days"
	if len(e.Calls) == 0 {
		return condition(name, Unmet, "no key called version 1 in the last 30 days")
	}
	var partners []string
	details := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		details[i] = domain.Visible(c.String())
		if c.Partner != "" && !slices.Contains(partners, c.Partner) {
			partners = append(partners, c.Partner)
		}
	}
	commands := []string{"partnerapi v1 status --operations"}
	if s.Announcement != nil {
		commands = remindCommands(partners)
	}
	otherwise, found := Unmet, plural(len(e.Calls), "key", "keys")+" called version 1 in the last 30 days"
	if e.Force {
		otherwise = Warning
	} else {
		found += "; --force ends version 1 anyway"
	}
	c := condition(name, otherwise, found, commands...)
	c.Details = details
	return c
}

// allSuccessors is met if the served release of v2 has a successor of every operation of v1.
func (s *State) allSuccessors(e EndRequest) Condition {
	const name = "successors served"
	served := "release " + s.Release + " of version 2, which the service serves,"
	if s.Release == "" {
		served = "the release of version 2 that the service serves"
	}
	switch {
	case len(e.Missing) == 0 && s.Release == "":
		return condition(name, Unmet, "no release of version 2 has been served yet")
	case len(e.Missing) == 0:
		return condition(name, Unmet, served+" has a successor for every operation")
	}
	release := "latest"
	if e.Release != "" {
		release = e.Release
	}
	c := condition(name, Unmet, served+" has no successor for "+plural(len(e.Missing), "operation", "operations"),
		"partnerapi serve --release "+release)
	c.Details = e.Missing
	return c
}

// allNotified is met if every partner was notified. v1 can end without.
func (s *State) allNotified(e EndRequest, now time.Time) Condition {
	const name = "partners notified"
	if len(e.Unnotified) == 0 {
		found := "all partners were notified of the end"
		if e.Partners == 0 {
			found = "there are no partners to notify"
		}
		return condition(name, Warning, found)
	}
	var details, reachable, commands []string
	for _, u := range e.Unnotified {
		if !u.NoAdmin {
			details, reachable = append(details, domain.Visible(u.Name)), append(reachable, u.Name)
			continue
		}
		details = append(details, domain.Visible(u.Name)+" (no owner or admin)")
		if len(commands) < maxCommands {
			commands = append(commands, "partnerapi admins add EMAIL --name NAME --partner "+shellWord(u.Name))
		}
	}
	switch {
	case s.Announcement == nil:
		commands = []string{announceCommand(now)}
	case len(reachable) > 0:
		commands = append(remindCommands(reachable), commands...)
	}
	noun := "partners were"
	if len(e.Unnotified) == 1 {
		noun = "partner was"
	}
	c := condition(name, Warning, fmt.Sprintf("%d %s never notified of the end", len(e.Unnotified), noun), commands...)
	c.Details = details
	return c
}

// remindCommands returns commands that notify partners: one for each or, if there are none or many, one for all.
func remindCommands(partners []string) (commands []string) {
	if len(partners) == 0 || len(partners) > maxCommands {
		return []string{"partnerapi v1 remind"}
	}
	for _, name := range partners {
		commands = append(commands, "partnerapi v1 remind --partner "+shellWord(name))
	}
	return commands
}

// plural formats a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// shellWord quotes a text as one word of a shell.
func shellWord(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
