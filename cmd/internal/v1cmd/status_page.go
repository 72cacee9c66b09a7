package v1cmd

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
)

//go:embed status.html
var statusPage string

//go:embed status.css
var statusStyle string

// pageTemplate makes the page of a status. Its functions write times and numbers as the command does.
var pageTemplate = template.Must(template.New("status").Funcs(template.FuncMap{
	"moment":  func(t domain.Time) string { return output.FormatTime(&t.Time) },
	"day":     func(t domain.Time) string { return FormatDay(t.Time) },
	"class":   func(v usage.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"grouped": output.Grouped,
	"outcome": func(o retire.Outcome) string { return pageOutcomes[o] },
	"canEnd":  canEnd,
	"style":   func() template.CSS { return template.CSS(statusStyle) },
	"policy": func() string {
		digest := sha256.Sum256([]byte(statusStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; base-uri 'none'; form-action 'none'"
	},
	"verdicts": func() []usage.Verdict { return usage.Verdicts },
	"small":    func(days []usage.Day) chart { return newChart(days, 0, small) },
	"newest": func(days []usage.Day) []usage.Day {
		days = slices.Clone(days)
		slices.Reverse(days)
		return days
	},
}).Parse(statusPage))

// pageOutcomes are the outcomes of conditions as the page writes them.
var pageOutcomes = map[retire.Outcome]string{retire.Met: "met", retire.Unmet: "not met", retire.Warning: "warning"}

// Remaining returns the number of days to or since the sunset, and their unit; nil if none is announced or v1 ended.
func (st *Status) Remaining() []string {
	if st.Announcement == nil || st.EndedAt != nil {
		return nil
	}
	left, unit := st.Announcement.DaysLeft, "days left"
	switch {
	case left == 1:
		unit = "day left"
	case left < 0:
		unit = "days past the sunset"
	}
	return []string{fmt.Sprint(max(left, -left)), unit}
}

// Count returns how many keys have a verdict.
func (st *Status) Count(v usage.Verdict) (n int) {
	for _, k := range st.Keys {
		if k.Verdict == v {
			n++
		}
	}
	return n
}

// WritePage writes the page to a file, which is replaced only when the page is complete.
func (st *Status) WritePage(name string) error {
	_, err := output.WriteFile(name, func(to *bufio.Writer) error { return pageTemplate.Execute(to, st) })
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// partnerGroup is a partner's keys that called v1, whom to contact, and the last notice of v1's end to them.
type partnerGroup struct {
	Name     string
	Contacts []string
	Notice   string
	Keys     []keyStatus
}

// Groups returns the keys by partner. Keys are in the order of compareKeys, and partners in that of their first key.
func (st *Status) Groups() (groups []*partnerGroup) {
	byPartner := map[domain.PartnerID]*partnerGroup{}
	for _, k := range slices.SortedStableFunc(slices.Values(st.Keys), compareKeys) {
		g := byPartner[k.partner]
		if g == nil {
			g = &partnerGroup{Name: cmp.Or(k.PartnerName, "unknown partner"), Contacts: st.contacts[k.partner], Notice: st.lastNotice(k.partner)}
			byPartner[k.partner] = g
			groups = append(groups, g)
		}
		g.Keys = append(g.Keys, k)
	}
	return groups
}

// lastNotice says when a partner was last notified of v1's end, and what happened to the emails.
func (st *Status) lastNotice(partner domain.PartnerID) string {
	var last *mailStatus
	sent, waiting, failed := 0, 0, 0
	for _, m := range st.Mails { // the newest first
		switch {
		case m.partner != partner, last != nil && (m.Kind != last.Kind || FormatDay(m.CreatedAt.Time) != FormatDay(last.CreatedAt.Time)):
			continue
		case m.SentAt != nil:
			sent++
		case m.FailedAt != nil:
			failed++
		default:
			waiting++
		}
		if last == nil {
			last = &m
		}
	}
	if last == nil {
		return "never notified"
	}
	text := fmt.Sprintf("last notice %s on %s: %s", last.Kind, FormatDay(last.CreatedAt.Time), output.Plural(sent, "email", "emails")+" sent")
	if waiting > 0 {
		text += fmt.Sprintf(", %d waiting", waiting)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
