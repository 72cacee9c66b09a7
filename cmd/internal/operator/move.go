package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/move"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/platform/seal"
)

// Move is the command move, which moves a partner to another cell.
type Move struct {
	Partner movePartnerCmd `cmd:"" default:"withargs" help:"Move a partner to another cell, or resume an interrupted move." example:"move partner 'Tidewater MSP' --to postgres://partnerapi@cell01.example.com/partnerapi --dry-run\nmove partner 'Tidewater MSP' --to postgres://partnerapi@cell01.example.com/partnerapi"`
	Status  moveStatusCmd  `cmd:"" help:"List partners' moves to and from this cell." example:"move status"`
	Cancel  moveCancelCmd  `cmd:"" help:"Cancel a move, unless the other cell already serves the partner." example:"move cancel 'Fabrikam IT' --to postgres://partnerapi@cell01.example.com/partnerapi"`
}

// moveFlags select the partner to move and the two databases. The database, key and store flags are the old cell's.
type moveFlags struct {
	database.Flags
	Partners []string `arg:"" name:"partner" help:"IDs, UUIDs or names of the partners to move, one after another."`
	To       string   `required:"" env:"-" placeholder:"URL" help:"URL of the other cell's PostgreSQL database."`
}

type movePartnerCmd struct {
	moveFlags
	database.KeyFlags
	config.StoreFlag
	ToKey         string        `name:"to-key" env:"-" type:"path" placeholder:"FILE" help:"File with the other cell's encryption key. Default: this cell's key."`
	ToReportStore string        `name:"to-report-store" env:"-" placeholder:"URL" help:"Location of the other cell's report files. Default: this cell's --report-store."`
	Keep          time.Duration `env:"-" default:"168h" help:"Time for which this cell keeps the partner's rows after the move."`
	DryRun        bool          `name:"dry-run" env:"-" help:"Print what would be moved and what prevents the move, without changing anything."`
}

func (movePartnerCmd) Help() string {
	return "Run this command on the cell that currently serves the partner. The command copies the data while the partner remains in use. " +
		"It then copies the last changes and compares both cells. Meanwhile, the partner's writes return 503 with Retry-After for a " +
		"few seconds: at most 30 seconds, up to three times. Afterward, the other cell serves the partner with " +
		"the same IDs, numeric IDs, keys, cursors and secrets. This cell returns 421 for the partner's keys, with the other " +
		"cell's code.\n\n" +
		"You can interrupt the command at any time and run it again to resume. Until the other cell serves the partner, move cancel " +
		"undoes the move. The role in the other database must be allowed to SET session_replication_role."
}

// Validate rejects a negative --keep and invalid keys; kong calls it while parsing.
func (c movePartnerCmd) Validate() error {
	if c.Keep < 0 {
		return errors.New("--keep must not be negative")
	}
	return c.CheckKey()
}

// with opens both databases and runs work for each partner. After a failure it continues, unless ctx has ended.
func (f moveFlags) with(ctx context.Context, s cli.Env, work func(*move.Move) error) error {
	return f.With(ctx, s, func(from *db.DB) error {
		return database.Flags{DatabaseURL: f.To}.With(ctx, s, func(to *db.DB) error {
			var faults []error
			for _, name := range f.Partners {
				if len(f.Partners) > 1 {
					fmt.Fprintf(s.Err, "%s:\n", name)
				}
				if err := f.withOne(ctx, s, name, from, to, work); err != nil {
					faults = append(faults, fmt.Errorf("%s: %w", name, err))
				}
				if ctx.Err() != nil {
					break
				}
			}
			return errors.Join(faults...)
		})
	})
}

// withOne runs work for the named partner.
func (f moveFlags) withOne(ctx context.Context, s cli.Env, name string, from, to *db.DB, work func(*move.Move) error) error {
	partner, err := f.findPartner(ctx, from, name)
	if err != nil {
		return err
	}
	return plainError(work(&move.Move{
		From: from, To: to, Partner: partner,
		Logf: func(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) },
	}))
}

// findPartner finds a partner by its id, UUID or name, or, if its rows were deleted after the move, by its id or UUID.
func (f moveFlags) findPartner(ctx context.Context, from *db.DB, name string) (domain.PartnerID, error) {
	partner, err := database.FindPartner(ctx, from, name)
	if err == nil {
		return partner, nil
	}
	all, listErr := move.List(ctx, from)
	for _, m := range all {
		if m.Partner.String() == name || m.Partner.UUID() == name {
			return m.Partner, nil
		}
	}
	return partner, errors.Join(err, listErr)
}

// Run moves the partners. With --dry-run it prints what would be moved, and all that prevents it.
func (c movePartnerCmd) Run(ctx context.Context, s cli.Env) error {
	return c.with(ctx, s, func(m *move.Move) error {
		m.Keep = c.Keep
		keys, keysErr := c.readKeys() // CheckKeys returns keysErr: a dry run reports it with all other faults
		m.CheckKeys = func(source, target context.Context, hasSecrets bool) error {
			return cmp.Or(keysErr, errors.Join(keys.checkOwn(source, m.From, hasSecrets),
				keys.checkTo(target, m.To, hasSecrets)))
		}
		m.Reseal = func(col db.SealedColumn, uuid string, sealed []byte) ([]byte, error) {
			return keys.both.Reseal(sealed, seal.Context(col.Kind, uuid)) // with the other cell's key
		}
		var storesErr error // a dry run reports it too
		m.CopyFile, storesErr = c.reportCopier(ctx, s)
		if c.DryRun {
			return c.printDryRun(ctx, s, m, storesErr)
		}
		if storesErr != nil {
			return storesErr
		}
		if err := auditMove(ctx, m, "move"); err != nil {
			return err
		}
		if err := m.Run(ctx); err != nil {
			return fmt.Errorf("%w\nrun the command again to continue", err)
		}
		return c.printNextSteps(ctx, s, m)
	})
}

// auditMove writes the audit entry of the command, unless a move of the partner has begun and not ended: a command that
// is repeated leaves one entry, and no entry can be written while the partner's writes are refused.
func auditMove(ctx context.Context, m *move.Move, command string) error {
	all, err := move.List(ctx, m.From)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Partner == m.Partner && s.Step != move.Active && s.Step != move.Cleaned {
			return nil
		}
	}
	return m.From.Audit(ctx, database.AsCommand(*database.PartnerEntry(command, m.Partner)))
}

// moveKeys are the encryption keys of a move: own decrypts the secrets of this cell, to encrypts with the other cell's
// key, and both decrypts with either and encrypts with the other cell's. A key that does not exist is nil.
type moveKeys struct{ own, to, both *seal.Keys }

// readKeys reads the keys of both cells. This cell's are those of --encryption-key or, for an embedded database, those
// in its key file; nil if there are none. Without --to-key the other cell has the same keys.
func (c movePartnerCmd) readKeys() (k moveKeys, err error) {
	own := c.EncryptionKey
	if own == "" && c.DatabaseURL == "" {
		own = "file:" + c.KeyFile()
	}
	if own != "" {
		if k.own, err = seal.ParseKeys(own); err != nil {
			return k, err
		}
	}
	if c.ToKey == "" {
		k.to, k.both = k.own, k.own
		return k, nil
	}
	to := "file:" + c.ToKey
	if k.to, err = seal.ParseKeys(to); err != nil {
		return k, fmt.Errorf("--to-key: %w", err)
	}
	k.both = k.to
	if own != "" { // the keys of both cells, the other cell's first
		k.both, err = seal.ParseKeys(to + "," + own)
	}
	return k, err
}

// checkOwn compares the keys of this cell with the check value that its processes stored, unless the partner has no
// secrets. Without a check value, any keys are accepted.
func (k moveKeys) checkOwn(ctx context.Context, from *db.DB, hasSecrets bool) error {
	if !hasSecrets {
		return nil
	}
	if k.own == nil {
		return fmt.Errorf("the partner's secrets in this cell require --encryption-key: %w", seal.ErrNoKey)
	}
	check, err := from.EncryptionCheck(ctx)
	if err != nil || check == nil {
		return err
	}
	if _, err = k.own.Open(check, database.CheckContext); err != nil {
		err = fmt.Errorf("the key of this cell (--encryption-key) does not decrypt its secrets: %w", err)
	}
	return err
}

// checkTo compares the keys of the other cell with the check value that its processes stored. A missing check value is
// an error only if the partner has secrets.
func (k moveKeys) checkTo(ctx context.Context, to *db.DB, hasSecrets bool) error {
	if k.to == nil {
		return nil // no keys in either cell: checkOwn returns an error if the partner has secrets
	}
	check, err := to.EncryptionCheck(ctx)
	switch {
	case err != nil:
		return err
	case check != nil:
		if _, err = k.to.Open(check, database.CheckContext); err != nil {
			err = fmt.Errorf("the other cell's processes use a key other than --to-key: %w", err)
		}
	case hasSecrets:
		err = errors.New("no process of the other cell has started with an encryption key yet, so --to-key cannot be compared; start serve or work there first")
	}
	return err
}

// reportCopier returns a function that copies a report's file to the other cell's store. The function does nothing if
// both cells share a store.
func (c movePartnerCmd) reportCopier(ctx context.Context, s cli.Env) (func(context.Context, domain.Report) error, error) {
	if c.ToReportStore == "" || c.ToReportStore == c.ReportStore {
		return func(context.Context, domain.Report) error { return nil }, nil
	}
	log := output.NewLog(s.Err, slog.LevelWarn, "text")
	from, err := c.OpenStore(ctx, c.DataDir, log)
	if err != nil {
		return nil, err
	}
	to, err := report.OpenStore(ctx, c.ToReportStore, filepath.Join(c.DataDir, "reports"), log) // the folder is unused
	if err != nil {
		return nil, fmt.Errorf("--to-report-store: %w", err)
	}
	return func(ctx context.Context, r domain.Report) error { return copyReport(ctx, from, to, r) }, nil
}

// copyReport copies a report's file, unless the other store has it already or this store does not have it.
func copyReport(ctx context.Context, from, to *report.Store, r domain.Report) error {
	existing, err := to.Open(ctx, r)
	if err == nil {
		return existing.Close()
	}
	if !errors.Is(err, report.ErrNoFile) {
		return err
	}
	file, err := from.Open(ctx, r)
	if errors.Is(err, report.ErrNoFile) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(to.Put(ctx, r, file), file.Close())
}

// printDryRun prints how many rows would be moved, and notes. It returns an error if something prevents the move, such
// as storesErr.
func (c movePartnerCmd) printDryRun(ctx context.Context, s cli.Env, m *move.Move, storesErr error) error {
	sizes, err := m.Sizes(ctx)
	if err != nil {
		return err
	}
	var total int64
	for _, size := range sizes {
		total += size.Rows
		if size.Rows > 0 {
			fmt.Fprintf(s.Out, "%10d  %s\n", size.Rows, size.Table)
		}
	}
	fmt.Fprintf(s.Out, "%10d  rows in total\n", total)
	notes, err := m.DryRun(ctx)
	for _, note := range notes {
		fmt.Fprintln(s.Out, "note:", note)
	}
	if err := errors.Join(err, storesErr); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, "nothing prevents the move")
	return err
}

// printNextSteps prints which cell serves the partner now, and all keys in that cell whose text names another cell: the
// router needs an entry for each of them.
func (c movePartnerCmd) printNextSteps(ctx context.Context, s cli.Env, m *move.Move) error {
	cell, err := m.To.Cell(ctx)
	if err != nil {
		return err
	}
	strays, err := cells.StrayKeys(ctx, m.To, cell)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "cell %s now serves the partner; this cell keeps the rows for %s\n", cell.Code(), c.Keep)
	if len(strays) > 0 {
		fmt.Fprintf(s.Out, "in the router's table for cell %s, put these key prefixes first, before the cell codes:\n", cell.Code())
	}
	for _, k := range strays {
		fmt.Fprintf(s.Out, "  %s\n", k.Prefix)
	}
	return nil
}

type moveCancelCmd struct{ moveFlags }

// Run cancels the move of each partner.
func (c moveCancelCmd) Run(ctx context.Context, s cli.Env) error {
	return c.with(ctx, s, func(m *move.Move) error {
		if err := m.Cancel(ctx); err != nil {
			return err
		}
		if err := auditMove(ctx, m, "move cancel"); err != nil { // writes are accepted again
			return err
		}
		_, err := fmt.Fprintln(s.Out, "the move is canceled: this cell serves the partner as before, and the other cell has none of the partner's data")
		return err
	})
}

type moveStatusCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print the moves as a JSON array."`
}

// moveLine is a move as the command prints it in JSON.
type moveLine struct {
	PartnerID domain.PartnerID `json:"partner_id"`
	Partner   string           `json:"partner"`
	Step      move.Step        `json:"step"`
	Cell      string           `json:"cell"`
	BeganAt   time.Time        `json:"began_at"`
	MovedAt   *time.Time       `json:"moved_at"`
	KeepUntil *time.Time       `json:"keep_until"`
}

// stateTexts describe the steps of a move for people; %s is the code of the other cell.
var stateTexts = map[move.Step]string{
	move.Copying:     "is being copied to cell %s while in use",
	move.Frozen:      "is moving to cell %s: writes are rejected",
	move.HandingOver: "is moving to cell %s: writes are rejected until you run move again",
	move.Detached:    "is served by cell %s; rows are kept here",
	move.Cleaned:     "is served by cell %s",
	move.Arriving:    "is arriving from cell %s",
	move.Active:      "came from cell %s and is served here",
}

// row returns the columns of a move. The text of its step names the other cell.
func (l moveLine) row() []any {
	return []any{l.Partner, fmt.Sprintf(stateTexts[l.Step], l.Cell), output.FormatTime(&l.BeganAt), output.FormatTime(l.MovedAt), output.FormatTime(l.KeepUntil), l.PartnerID}
}

// Run lists the moves.
func (c moveStatusCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		all, err := move.List(ctx, d)
		if err != nil {
			return err
		}
		lines := pg.MapRows(all, func(m *move.Status) moveLine {
			return moveLine{m.Partner, m.Name, m.Step, m.Cell, m.BeganAt, m.MovedAt, m.KeepUntil}
		})
		return output.List(s.Out, c.JSON, lines, []any{"PARTNER", "STATE", "BEGAN", "MOVED", "KEPT UNTIL", "ID"}, moveLine.row)
	})
}
