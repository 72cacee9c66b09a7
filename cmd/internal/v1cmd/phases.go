package v1cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

type phaseV1Cmd struct {
	database.Flags
	Words   []string   `arg:"" name:"key-and-phase" help:"The key's prefix, as shown by keys list (omit it with --partner, --all or --new), followed by the phase: on (all requests work), read_only (writes are rejected), brownout (requests are rejected during brownouts) or off (all requests are rejected)."`
	Partner string     `env:"-" xor:"which" help:"All existing keys of the partner with this ID, UUID or name."`
	All     bool       `env:"-" xor:"which" help:"All existing keys."`
	New     bool       `env:"-" xor:"which" help:"Keys created from now on, but not existing keys. The phase must be on or off."`
	Force   bool       `env:"-" help:"Allow --all off even if no end is announced."`
	Until   cli.Moment `env:"-" placeholder:"DATE" help:"End of this setting: 2027-01-31 (00:00 UTC) or 2027-01-31T12:00:00Z. After this time, the previous setting applies again. If omitted, the setting has no end, and the previous setting is deleted."`

	key   string // empty for --partner, --all and --new
	phase retire.Phase
}

// Help says how phases follow one another.
func (phaseV1Cmd) Help() string {
	return `The most recent setting applies to a key, whether it was set for the key, its partner or all keys. After --until, the previous setting applies again unless it has ended too. --partner and --all affect only existing keys. A key created later starts in phase on. After --new off, a new key starts in phase off unless you create it with keys create --v1. Rejected requests return 410 and name the operation to call in v2.`
}

// Validate sets key and phase from Words, and rejects flags that do not go with them; kong calls it while parsing.
func (c *phaseV1Cmd) Validate() (err error) {
	words := c.Words
	if !c.All && !c.New && c.Partner == "" && len(words) > 0 {
		c.key, words = words[0], words[1:]
	}
	if len(words) != 1 {
		return errors.New("specify a key and a phase, or a phase with --partner NAME, --all or --new")
	}
	if c.phase, err = retire.ParsePhase(words[0]); err != nil {
		return err
	}
	if c.New && (c.phase != retire.On && c.phase != retire.Off || !c.Until.IsZero()) {
		return errors.New("--new accepts only on or off, without --until")
	}
	if c.Force && (!c.All || c.phase != retire.Off) {
		return errors.New("--force requires --all off")
	}
	return nil
}

// errUnannounced prevents switching v1 off for all keys by mistake.
var errUnannounced = errors.New("the end of version 1 is not announced, and --all off rejects all requests of all keys; " +
	"announce the end with partnerapi v1 announce --sunset DATE, or set the phase anyway with --force")

// Run sets the phase of the selected keys or, with --new, of keys created later. Before an announcement, --all off is
// refused unless --force is given.
func (c *phaseV1Cmd) Run(ctx context.Context, s cli.Env) error {
	return withRetirement(ctx, c.Flags, s, func(r retirement) error {
		if c.New {
			return c.setNewKeys(ctx, r)
		}
		entry := &domain.AuditEntry{Operation: "v1 phase", Fields: []string{"phase"}}
		scope, name, err := c.scope(ctx, r, entry) // adds selected keys to entry
		if err != nil {
			return err
		}
		if c.All && c.phase == retire.Off && r.state.Announcement == nil && !c.Force {
			return errUnannounced
		}

		until := ""
		if !c.Until.IsZero() {
			until = " until " + retire.FormatTime(c.Until.Time)
			entry.Fields = append(entry.Fields, "until")
		}
		err = r.change(ctx, entry, func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%s: %s%s.", name, c.phase, until), r.SetPhase(ctx, scope, c.phase, c.Until.Time)
		})
		if err != nil {
			return err
		}
		c.printHints(r)
		return nil
	})
}

// setNewKeys sets the phase of keys created from now on.
func (c *phaseV1Cmd) setNewKeys(ctx context.Context, r retirement) error {
	message := "keys created from now on can use v1."
	if c.phase == retire.Off {
		message = "keys created from now on cannot use v1, unless you create them with keys create --v1."
	}
	entry := &domain.AuditEntry{Operation: "v1 phase", Fields: []string{"new_keys"}}
	return r.change(ctx, entry, func(ctx context.Context) (string, error) {
		return message, r.SetNewKeys(ctx, c.phase == retire.Off)
	})
}

// scope returns the selected keys and their name, adds them to the audit entry, and prints a note on a revoked key.
func (c *phaseV1Cmd) scope(
	ctx context.Context, r retirement, entry *domain.AuditEntry,
) (scope retire.Scope, name string, err error) {
	switch {
	case c.All:
		return scope, "all keys", nil
	case c.Partner != "":
		scope.Partner, err = database.FindPartner(ctx, r.db, c.Partner)
		entry.Partner, entry.Object = scope.Partner, domain.AuditObject{Kind: scope.Partner.Noun(), ID: scope.Partner.String()}
		return scope, "the keys of " + c.Partner, err
	}
	keys, err := r.db.Keys(ctx)
	if err != nil {
		return scope, "", err
	}
	key, err := findKey(keys, c.key)
	if err != nil {
		return scope, "", err
	}
	if key.RevokedAt != nil {
		fmt.Fprintf(r.Err, "%s is revoked, so all requests with it are rejected.\n", key.Prefix)
	}
	scope.Key, entry.Partner, entry.Object = key.ID, key.PartnerID, database.KeyObject(key.Prefix)
	return scope, key.Prefix + " (" + key.Name + ")", nil
}

// printHints prints what an operator may not expect after the change: the end of v1 is reversed; off for all keys or
// for a partner's keys leaves new keys with v1; brownout has no effect while no brownout is scheduled.
func (c *phaseV1Cmd) printHints(r retirement) {
	if r.state.EndedAt != nil { // v1 had ended before the change, and SetPhase then allows only --all on
		fmt.Fprint(r.Out, "The end of version 1 has been undone.")
		if !c.Until.IsZero() {
			fmt.Fprintf(r.Out, " From %s on, all keys are off again; to end version 1 then, run partnerapi v1 end.", retire.FormatTime(c.Until.Time))
		}
		fmt.Fprintln(r.Out)
	}
	if c.key == "" && c.phase == retire.Off && !r.state.NewKeysOff {
		fmt.Fprintln(r.Out, "Keys created from now on can still use v1. To change that, run partnerapi v1 phase --new off.")
	}
	isAhead := func(w retire.Window) bool { return w.Ends().After(r.db.Now()) }
	if c.phase == retire.Brownout && !slices.ContainsFunc(r.state.Windows, isAhead) {
		fmt.Fprintln(r.Out, "No brownout is scheduled, so no requests are rejected. To schedule one, run partnerapi v1 brownout add.")
	}
}

// findKey returns the key that has, or had, a text with the prefix; an error if there is none.
func findKey(keys []db.Key, prefix string) (db.Key, error) {
	for _, k := range keys {
		if k.Has(prefix) {
			return k, nil
		}
	}
	return db.Key{}, fmt.Errorf("there is no key with the prefix %q; specify the whole prefix, as shown by keys list", prefix)
}

// findKeyByPrefix returns the key with the prefix start or, without one, the only key with a prefix that begins with
// start.
// It is for commands that change nothing.
func findKeyByPrefix(keys []db.Key, start string) (db.Key, error) {
	var found []db.Key
	for _, k := range keys {
		begins := func(prefix string) bool { return strings.HasPrefix(prefix, start) }
		if begins(k.Prefix) || slices.ContainsFunc(k.Replaced, begins) {
			found = append(found, k)
		}
	}
	key, err := findKey(found, start)
	switch {
	case err == nil:
		return key, nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return key, fmt.Errorf("%d keys begin with %q; specify the whole prefix, as shown by keys list",
			len(found), start)
	}
	return key, err
}
