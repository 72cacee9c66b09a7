package v1cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

type phaseV1Cmd struct {
	database.Flags
	Words   []string `arg:"" name:"key-and-phase" help:"The key's prefix, as keys list shows it, unless --partner or --all is given, and the phase: on (everything is answered), read_only (writes are refused), brownout (refused in the windows of brownouts) or off."`
	Partner string   `env:"-" xor:"which" help:"All keys of this partner, also later ones: its id, UUID or name."`
	All     bool     `env:"-" xor:"which" help:"All keys, also later ones."`
	Force   bool     `env:"-" help:"Set --all off although no end is announced."`
	Until   string   `env:"-" placeholder:"DATE" help:"When what was set before holds again, as 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z. Default: never, and what was set before is forgotten."`
}

// Help says how phases follow one another.
func (phaseV1Cmd) Help() string {
	return `The phase that was set last holds for a key, be it for the key, its partner or all. One with --until leaves, when it is over, what would hold without it: also one with a later --until. What is refused is answered 410, with what to call in v2.`
}

// Validate refuses what is neither a key and a phase, nor a phase for --partner or
// --all.
func (c phaseV1Cmd) Validate() error {
	if _, _, err := c.wanted(); err != nil {
		return err
	}
	_, err := c.until()
	return err
}

// wanted are the key's prefix, empty for none, and the phase.
func (c phaseV1Cmd) wanted() (key string, phase retire.Phase, err error) {
	words, want := c.Words, 2
	if c.All || c.Partner != "" {
		want = 1
	}
	if len(words) != want {
		return "", "", errors.New("give a key and a phase, or a phase with --partner NAME or --all")
	}
	if want == 2 {
		key = words[0]
	}
	phase, err = retire.ParsePhase(words[want-1])
	if err == nil && c.Force && (!c.All || phase != retire.Off) {
		err = errors.New("--force goes with --all off")
	}
	return key, phase, err
}

func (c phaseV1Cmd) until() (time.Time, error) {
	if c.Until == "" {
		return time.Time{}, nil
	}
	return v1Time("--until", c.Until)
}

// errUnannounced keeps v1 from being switched off by a slip.
var errUnannounced = errors.New("no end of version 1 is announced, and --all off refuses every key everything: " +
	"partnerapi v1 announce --sunset DATE announces it; --force sets the phase all the same")

// Run sets a phase.
func (c phaseV1Cmd) Run(ctx context.Context, s cli.Env) error {
	prefix, phase, err := c.wanted()
	if err != nil {
		return err
	}
	until, err := c.until()
	if err != nil {
		return err
	}
	return retiring(ctx, c.Flags, s, func(d *db.DB, store *retire.Store) error {
		scope, name, err := c.scope(ctx, d, prefix, s.Err)
		if err != nil {
			return err
		}
		before, err := store.Load(ctx)
		if err != nil {
			return err
		}
		if _, announced := before.Announcement(); c.All && phase == retire.Off && !announced && !c.Force {
			return errUnannounced
		}
		err = database.Audited(ctx, d, c.entry(scope, prefix), func(ctx context.Context) error {
			return store.SetPhase(ctx, scope, phase, until)
		})
		if err != nil {
			return err
		}
		lasts := ""
		if !until.IsZero() {
			lasts = " until " + retire.Moment(until)
		}
		fmt.Fprintf(s.Out, "%s: %s%s. %s\n", name, phase, lasts, acts)
		if _, ended := before.Ended(); ended {
			fmt.Fprintln(s.Out, reopened(until))
		}
		if phase != retire.Brownout {
			return nil
		}
		return hintBrownouts(ctx, d, store, s.Out)
	})
}

// entry is what the audit trail has of a phase that is set.
func (c phaseV1Cmd) entry(scope retire.Scope, prefix string) *domain.AuditEntry {
	e := &domain.AuditEntry{Operation: "v1 phase", Partner: scope.Partner, Fields: []string{"phase"}}
	if c.Until != "" {
		e.Fields = append(e.Fields, "until")
	}
	switch {
	case prefix != "":
		e.Object = database.KeyObject(prefix)
	case c.Partner != "":
		e.Object = domain.AuditObject{Kind: scope.Partner.Noun(), ID: scope.Partner.String()}
	}
	return e
}

// brownoutObject is a brownout as the audit trail names it.
func brownoutObject(id int64) domain.AuditObject {
	return domain.AuditObject{Kind: "brownout", ID: strconv.FormatInt(id, 10)}
}

// reopened says what becomes of v1 when its end is taken back, until a time or, where
// that is zero, for good.
func reopened(until time.Time) string {
	if until.IsZero() {
		return "The end of version 1 is taken back."
	}
	return "The end of version 1 is taken back. From " + retire.Moment(until) + " on all keys are off again, and partnerapi v1 end ends it."
}

// scope is the keys that the phase is for, and their name.
func (c phaseV1Cmd) scope(ctx context.Context, d *db.DB, prefix string, errs io.Writer) (retire.Scope, string, error) {
	switch {
	case c.All:
		return retire.Scope{}, "all keys", nil
	case c.Partner != "":
		id, err := database.PartnerCalled(ctx, d, c.Partner)
		return retire.Scope{Partner: id}, "the keys of " + c.Partner, err
	}
	keys, err := d.Keys(ctx)
	if err != nil {
		return retire.Scope{}, "", err
	}
	key, err := keyCalled(keys, prefix)
	if err != nil {
		return retire.Scope{}, "", err
	}
	warnOfRevoked(errs, key)
	return retire.Scope{Key: key.ID}, key.Prefix + " (" + key.Name + ")", nil
}

// hintBrownouts says so where no window is to come.
func hintBrownouts(ctx context.Context, d *db.DB, store *retire.Store, w io.Writer) error {
	state, err := store.Load(ctx)
	if err != nil {
		return err
	}
	for _, window := range state.Windows() {
		if window.Ends().After(d.Now()) {
			return nil
		}
	}
	_, err = fmt.Fprintln(w, "No brownout is scheduled, so nothing is refused: partnerapi v1 brownout add schedules one.")
	return err
}

type brownoutCmd struct {
	Add    addBrownoutCmd    `cmd:"" help:"Add windows in which the keys in phase brownout are answered 410."`
	List   listBrownoutsCmd  `cmd:"" help:"List the brownouts, the oldest first."`
	Cancel cancelBrownoutCmd `cmd:"" help:"Remove a brownout, also one whose window is open."`
}

type addBrownoutCmd struct {
	database.Flags
	Start string        `required:"" env:"-" placeholder:"TIME" help:"When the first window begins, as 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z."`
	For   time.Duration `required:"" env:"-" placeholder:"10m" help:"How long each window is: 1s to 744h."`
	Every time.Duration `env:"-" placeholder:"168h" help:"How long it is from the beginning of one window to that of the next."`
	Count int           `default:"1" env:"-" help:"How many windows there are, at most 1000."`
	Keys  []string      `env:"-" placeholder:"PREFIX,…" help:"Only these keys, at most 100, by their prefixes as keys list shows them. Default: all."`
}

// Help says whom a brownout is for.
func (addBrownoutCmd) Help() string {
	return `A brownout is for keys in the phase brownout: for all of them, or for those of --keys that are in it. It moves no key into the phase (partnerapi v1 phase KEY brownout does). A window holds its first moment and not its last.`
}

// Validate refuses a time that is none.
func (c addBrownoutCmd) Validate() error {
	if c.Start == "" {
		return errors.New("say with --start TIME when the first window begins, such as --start 2027-01-31T12:00:00Z, and with " +
			"--for how long it is, such as --for 10m")
	}
	_, err := v1Time("--start", c.Start)
	return err
}

// Run adds a brownout.
func (c addBrownoutCmd) Run(ctx context.Context, s cli.Env) error {
	start, err := v1Time("--start", c.Start)
	if err != nil {
		return err
	}
	return retiring(ctx, c.Flags, s, func(d *db.DB, store *retire.Store) error {
		all, err := d.Keys(ctx)
		if err != nil {
			return err
		}
		window := retire.Window{Start: start, For: c.For, Every: c.Every, Count: c.Count}
		for _, prefix := range c.Keys {
			key, err := keyCalled(all, strings.TrimSpace(prefix))
			if err != nil {
				return fmt.Errorf("--keys: %w", err)
			}
			if !slices.Contains(window.Keys, key.ID) {
				window.Keys = append(window.Keys, key.ID)
			}
		}
		entry := &domain.AuditEntry{Operation: "v1 brownout add", Fields: []string{"count", "every", "for", "keys", "start"}}
		err = database.Audited(ctx, d, entry, func(ctx context.Context) (err error) {
			window.ID, err = store.AddBrownout(ctx, window)
			entry.Object = brownoutObject(window.ID)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "brownout %d: %s. %s\n", window.ID, scheduled(window), acts)
		return c.hint(ctx, d, store, window, all, s.Out)
	})
}

// hint names the keys that the brownout does not touch although it names them, and
// says so where it touches none.
func (c addBrownoutCmd) hint(
	ctx context.Context, d *db.DB, store *retire.Store, window retire.Window, all []db.Key, w io.Writer,
) error {
	phases, err := phasesOf(ctx, d, store, all)
	if err != nil {
		return err
	}
	touched := false
	for _, k := range all {
		in := phases[k.ID] == retire.Brownout
		named := slices.Contains(window.Keys, k.ID)
		touched = touched || in && (named || len(window.Keys) == 0)
		if named && !in {
			fmt.Fprintf(w, "%s is in phase %s, so this does not touch it: partnerapi v1 phase %s brownout puts it there.\n",
				k.Prefix, phases[k.ID], k.Prefix)
		}
	}
	if !touched && len(window.Keys) == 0 {
		_, err = fmt.Fprintln(w, "No key is in phase brownout, so this touches none: partnerapi v1 phase KEY brownout puts one "+
			"there.")
	}
	return err
}

// phasesOf are the phases that keys are in now.
func phasesOf(ctx context.Context, d *db.DB, store *retire.Store, keys []db.Key) (map[domain.KeyID]retire.Phase, error) {
	state, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	phases := map[domain.KeyID]retire.Phase{}
	for _, k := range keys {
		phases[k.ID], _ = state.PhaseOf(retire.Key{ID: k.ID, Partner: k.PartnerID}, d.Now())
	}
	return phases, nil
}

// scheduled is a schedule for people.
func scheduled(w retire.Window) string {
	text := fmt.Sprintf("%v from %s", w.For, retire.Moment(w.Start))
	if w.Count > 1 {
		text += fmt.Sprintf(", every %v, %d times, the last to %s", w.Every, w.Count, retire.Moment(w.Ends()))
	}
	return text
}

type listBrownoutsCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print JSON, an array of brownouts."`
}

// brownoutLine is a brownout as the command prints it in JSON.
type brownoutLine struct {
	ID           int64       `json:"id"`
	StartAt      domain.Time `json:"start_at"`
	ForSeconds   int64       `json:"for_seconds"`
	EverySeconds *int64      `json:"every_seconds"` // null for one window
	Count        int         `json:"count"`
	Keys         []string    `json:"keys"` // their prefixes; none for all in phase brownout

	window retire.Window
	now    time.Time
}

func (b brownoutLine) row() []any {
	every := "-"
	if b.EverySeconds != nil {
		every = b.window.Every.String()
	}
	return []any{
		b.ID, retire.Moment(b.window.Start), b.window.For, every, b.Count, next(b.window, b.now),
		cmp.Or(strings.Join(b.Keys, ","), "all in phase brownout"),
	}
}

// Run lists the brownouts.
func (c listBrownoutsCmd) Run(ctx context.Context, s cli.Env) error {
	return retiring(ctx, c.Flags, s, func(d *db.DB, store *retire.Store) error {
		state, err := store.Load(ctx)
		if err != nil {
			return err
		}
		keys, err := d.Keys(ctx)
		if err != nil {
			return err
		}
		prefixes := map[domain.KeyID]string{}
		for _, k := range keys {
			prefixes[k.ID] = k.Prefix
		}

		var lines []brownoutLine
		for _, b := range state.Windows() {
			line := brownoutLine{
				ID: b.ID, StartAt: domain.At(b.Start), ForSeconds: int64(b.For / time.Second), Count: b.Count, Keys: []string{},
				window: b, now: d.Now(),
			}
			if b.Count > 1 {
				line.EverySeconds = output.Given(int64(b.Every / time.Second))
			}
			for _, key := range b.Keys {
				line.Keys = append(line.Keys, cmp.Or(prefixes[key], key.String()))
			}
			lines = append(lines, line)
		}
		columns := []any{"ID", "START", "FOR", "EVERY", "COUNT", "NEXT", "KEYS"}
		return output.List(s.Out, c.JSON, lines, columns, brownoutLine.row)
	})
}

// next says which window of a brownout comes next.
func next(w retire.Window, now time.Time) string {
	from, to, ok := w.Next(now)
	switch {
	case !ok:
		return "over"
	case from.After(now):
		return retire.Moment(from)
	}
	return "now, to " + retire.Moment(to)
}

type cancelBrownoutCmd struct {
	database.Flags
	ID int64 `arg:"" help:"The brownout's number, as brownout list shows it."`
}

// Run removes a brownout.
func (c cancelBrownoutCmd) Run(ctx context.Context, s cli.Env) error {
	return retiring(ctx, c.Flags, s, func(d *db.DB, store *retire.Store) error {
		entry := &domain.AuditEntry{Operation: "v1 brownout cancel", Object: brownoutObject(c.ID)}
		err := database.Audited(ctx, d, entry, func(ctx context.Context) error { return store.CancelBrownout(ctx, c.ID) })
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "brownout %d is cancelled. %s\n", c.ID, acts)
		return err
	})
}
