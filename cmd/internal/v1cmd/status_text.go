package v1cmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"partnerapi/cmd/internal/output"
	"partnerapi/v1compat/usage"
)

// WriteTable prints the status in lines of lineWidth: when v1 ends, whether it can, and the keys that still have to
// move. With operations it prints all keys and their operations, all emails, and no cell is cut.
func (st *Status) WriteTable(out io.Writer, operations bool) error {
	t := statusText{st, out, lineWidth}
	if operations {
		t.width = 0 // no maximum
	}
	for _, line := range st.Heading {
		fmt.Fprintln(out, output.Wrap(line, lineWidth, 0))
	}
	if len(st.Checklist) > 0 {
		fmt.Fprintln(out, "\n"+canEnd(st.Checklist))
		writeChecklist(out, st.Checklist, someDetails)
	}
	fmt.Fprintln(out)
	parts := []func() error{t.keysToMove, t.timeline, t.parity, t.rehearsals, t.mailCount}
	if operations {
		parts = []func() error{t.keys, t.timeline, t.parity, t.rehearsals, t.mails}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// statusText prints a status as text, with tables up to a width; 0 means any.
type statusText struct {
	*Status
	out   io.Writer
	width int
}

// section prints a table of a list below a heading, if the list has items. Cells of the columns flexible are cut to the
// width.
func section[T any](t statusText, heading string, list []T, columns []any, flexible []int, row func(T) []any) error {
	if len(list) == 0 {
		return nil
	}
	if heading != "" {
		fmt.Fprintln(t.out, heading)
	}
	table := output.NewTable(t.out, columns...).Fit(t.width, flexible...)
	for _, item := range list {
		table.Row(row(item)...)
	}
	return table.Flush()
}

// keysToMove prints the keys that still have to move, and how many others there are.
func (t statusText) keysToMove() error {
	if len(t.Keys) == 0 {
		_, err := fmt.Fprintln(t.out, output.Wrap(t.NoCalls, lineWidth, 0))
		return err
	}
	list := slices.Clone(t.Keys)
	list = slices.DeleteFunc(list, func(k keyStatus) bool { return !k.hasToMove() })
	slices.SortStableFunc(list, compareKeys)
	columns := []any{"KEY", "NAME", "PARTNER", "LAST CALL", "CALLS", "VERDICT"}
	err := section(t, "Keys that still have to move:", list, columns, []int{1, 2}, func(k keyStatus) []any {
		return []any{k.Shown, k.Label, cmp.Or(k.PartnerName, "-"), FormatDay(k.LastAt.Time), k.Calls, k.Verdict}
	})
	if len(list) == 0 {
		_, err = fmt.Fprintln(t.out, "No keys have to move.")
	}
	if others := len(t.Keys) - len(list); others > 0 && err == nil {
		_, err = fmt.Fprintf(t.out, "%s moved, stopped or ended; --operations lists all keys.\n",
			output.Plural(others, "other key has", "other keys have"))
	}
	return err
}

// hasToMove reports whether the key can call v1 and neither moved nor stopped.
func (k keyStatus) hasToMove() bool {
	return k.Live && (k.Verdict == usage.NotBegun || k.Verdict == usage.HalfWay)
}

// compareKeys orders keys by verdict, from the one that needs most attention, and then by calls, the most first.
func compareKeys(a, b keyStatus) int {
	return cmp.Or(
		cmp.Compare(slices.Index(usage.Verdicts, a.Verdict), slices.Index(usage.Verdicts, b.Verdict)),
		cmp.Compare(b.Calls, a.Calls))
}

// keys prints the keys that called v1, and their operations.
func (t statusText) keys() error {
	if len(t.Keys) == 0 {
		_, err := fmt.Fprintln(t.out, t.NoCalls)
		return err
	}
	columns := []any{"KEY", "NAME", "PARTNER", "PHASE", "LAST CALL", "CALLS", "FAILED", "VERDICT"}
	err := section(t, "", t.Keys, columns, nil, func(k keyStatus) []any {
		last := output.FormatTime(&k.LastAt.Time)
		return []any{k.Shown, k.Label, cmp.Or(k.PartnerName, "-"), k.InPhase, last, k.Calls, k.Failures, k.Verdict}
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(t.out)
	calls := output.NewTable(t.out, "KEY", "OPERATION", "SUCCESSOR", "LAST CALL", "CALLS", "FAILED", "SUCCESSOR'S", "VERDICT", "USER AGENTS")
	for _, k := range t.Keys {
		for _, o := range k.Operations {
			calls.Row(k.Shown, o.Operation, cmp.Or(o.Successor, "-"), output.FormatTime(&o.LastAt.Time), o.Calls, o.Failures, o.SuccessorCalls,
				o.Verdict, cmp.Or(strings.Join(o.UserAgents, ", "), "-"))
		}
	}
	return calls.Flush()
}

// timeline prints the phases and brownouts, if there are any: how many requests each refused, and what comes next or,
// in the wide form, when it holds.
func (t statusText) timeline() error {
	columns, when := []any{"WHAT", "KEYS", "410", "WHEN"}, span.When
	if t.width > 0 {
		columns[3], when = "NEXT", func(s span) string { return s.Next(t.Now.Time) }
	}
	return section(t, "\nPhases and brownouts:", t.Timeline, columns, []int{1}, func(s span) []any {
		refused := any("-")
		if s.Refused != nil {
			refused = *s.Refused
		}
		return []any{s.What, s.Keys, refused, when(s)}
	})
}

// parity prints the keys with which parity called v1, if there are any.
func (t statusText) parity() error {
	heading := output.Wrap("Calls of v1 by partnerapi parity, which compares both versions; they are not counted above:", cmp.Or(t.width, 1<<30), 0)
	columns := []any{"KEY", "NAME", "PARTNER", "LAST CALL", "CALLS", "FAILED"}
	return section(t, "\n"+heading, t.Parity, columns, []int{1, 2}, func(p parityStatus) []any {
		return []any{cmp.Or(p.Prefix, "-"), p.Name, cmp.Or(p.PartnerName, "-"), output.FormatTime(&p.LastAt.Time), p.Calls, p.Failures}
	})
}

// rehearsals prints the rehearsals, if there were any.
func (t statusText) rehearsals() error {
	columns := []any{"KEY", "PARTNER", "LAST REHEARSAL", "END"}
	return section(t, "\nRehearsals:", t.Rehearsals, columns, []int{1}, func(r rehearsalStatus) []any {
		return []any{r.Key, cmp.Or(r.PartnerName, "-"), output.FormatTime(&r.StartedAt.Time), r.End()}
	})
}

// mailCount prints how many emails about the end of v1 there are, if there are any.
func (t statusText) mailCount() error {
	if len(t.Mails) == 0 {
		return nil
	}
	sent, failed := 0, 0
	for _, m := range t.Mails {
		switch {
		case m.SentAt != nil:
			sent++
		case m.FailedAt != nil:
			failed++
		}
	}
	text := fmt.Sprintf("Emails to partners: %d sent, %d waiting, %d failed; the last was requested on %s.",
		sent, len(t.Mails)-sent-failed, failed, FormatDay(t.Mails[0].CreatedAt.Time))
	_, err := fmt.Fprintln(t.out, "\n"+output.Wrap(text, lineWidth, 0))
	return err
}

// maxMailRows is the maximum number of emails in the table.
const maxMailRows = 50

// emails prints the latest emails about the end of v1, if there are any.
func (t statusText) mails() error {
	columns := []any{"EMAIL", "PARTNER", "TO", "REQUESTED", "SENT"}
	err := section(t, "\nEmails to partners:", t.Mails[:min(len(t.Mails), maxMailRows)], columns, nil, func(m mailStatus) []any {
		return []any{m.Kind, m.PartnerName, m.To, output.FormatTime(&m.CreatedAt.Time), m.State()}
	})
	if more := len(t.Mails) - maxMailRows; more > 0 && err == nil {
		_, err = fmt.Fprintf(t.out, "%d older emails; --json lists all emails.\n", more)
	}
	return err
}
