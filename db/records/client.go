package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of partners, clients and admins.

// Partners is the kind of partners. Their names are unique.
var Partners Kind = &kind[domain.PartnerRecord, db.PartnerRow]{
	object: "partner", partner: "p.id = ?", order: "p.created_at, p.id", rank: db.PartnerLocks, locked: "p.id",
	names: &names[db.PartnerRow]{
		field: "name", column: "name_key", held: "t.name_key = k.key",
		nameOf: func(r *db.PartnerRow) name { return name{"", r.NameKey} },
	},
}

// importedClient is a row of clients with the additional columns of imports and exports.
type importedClient struct {
	bun.BaseModel `bun:"table:clients,alias:c"`
	db.ClientRow
	ArchivedAt *time.Time

	Program         string `bun:",scanonly"` // as JSON
	PartnerArchived bool   `bun:",scanonly"`
}

// Clients is the kind of clients, including archived ones. A new client gets a Manual group, for users who belong to no
// directory and, if its record has no program, the default program. A program applies to users who are enrolled later.
//
// If Dark Web Monitoring is switched, later transactions recompute the client's scores. If the import is interrupted
// before them, the daily refresh recomputes them.
var Clients Kind = &kind[domain.ClientRecord, importedClient]{
	object: "client", partner: "c.partner_id = ?", order: "c.created_at, c.id", rank: db.ClientLocks, locked: "c.id",
	columns: `(
		SELECT coalesce(json_agg(json_build_object('course', p.course_id, 'due_after_days', p.due_after_days)
			ORDER BY p.position), '[]')::text
		FROM program_courses AS p WHERE p.client_id = c.id) AS program,
		(SELECT p.archived_at IS NOT NULL FROM partners AS p WHERE p.id = c.partner_id) AS partner_archived`,
	adjustRecord: func(r *importedClient, out *domain.ClientRecord) error {
		program, err := r.program()
		out.Program = domain.Give(program)
		out.Archived = archivedField(r.ArchivedAt)
		return err
	},
	names: &names[importedClient]{
		field: "name", column: "name_key",
		held: "t.partner_id = k.scope::uuid AND t.name_key = k.key AND t.archived_at IS NULL",
		nameOf: func(r *importedClient) name {
			if r.ArchivedAt != nil {
				return name{r.Partner.UUID(), ""}
			}
			return name{r.Partner.UUID(), r.NameKey}
		},
	},
	setDefaults: func(r *importedClient) {
		r.DarkWebMonitoring, r.Frameworks = true, []string{}
		// A stale summary, so that the first read computes it.
		r.Summary = domain.EmptySummary(r.CreatedAt.Add(-2 * domain.SummaryAge))
	},
	finish: finishClient, afterStore: addClientEffects, afterCommit: rescoreSwitched,
}

type (
	importingClients = recordBatch[domain.ClientRecord, importedClient]
	appliedClient    = recordChange[domain.ClientRecord, importedClient]
)

// program parses the client's program.
func (r *importedClient) program() ([]domain.ProgramCourse, error) {
	type object domain.ProgramCourse // without its UnmarshalText, which makes JSON expect an id only
	var list []object
	if err := json.Unmarshal([]byte(r.Program), &list); err != nil {
		return nil, fmt.Errorf("read the program of a client: %w", err)
	}
	program := make([]domain.ProgramCourse, len(list))
	for i := range list {
		program[i] = domain.ProgramCourse(list[i])
	}
	return program, nil
}

// archivedField returns the field archived of an exported record: true, or no value if at is nil.
func archivedField(at *time.Time) (archived domain.Optional[bool]) {
	if at != nil {
		archived = domain.Give(true)
	}
	return archived
}

// setArchived sets an object's time of archiving from the field archived of its record: to nil for false, and for true
// to the time of the change, unless the object is already archived. Without a value, it does not change the time.
func setArchived(c *db.Change, archived domain.Optional[bool], at **time.Time) {
	switch {
	case !archived.Given: // unchanged
	case !archived.Value:
		*at = nil
	case *at == nil:
		*at = &c.At
	}
}

// finishClient archives or restores the client, and sets a.sideEffect if its program changes. It refuses a program with
// a course that does not exist, or twice the same course, and a client of an archived partner that is not archived.
func finishClient(b *importingClients, a *appliedClient) error {
	setArchived(b.Change, a.record.Archived, &a.after.ArchivedAt)
	if a.after.ArchivedAt == nil {
		partner := b.found.find(domain.RefTo(a.after.Partner)) // nil if the record does not name it
		if a.after.PartnerArchived || partner != nil && partner.Archived {
			return errors.New("partner: it is archived; restore it first: partnerapi partners restore")
		}
	}
	if !a.record.Program.Given {
		return nil
	}
	program := a.record.Program.Value
	for i, p := range program {
		if b.found.find(p.Course) == nil {
			return noSuch("program", p.Course)
		}
		same := func(other domain.ProgramCourse) bool { return other.Course == p.Course }
		if slices.IndexFunc(program, same) < i {
			return fmt.Errorf("program has the course %s twice", p.Course)
		}
	}
	if a.before == nil {
		a.sideEffect = true
		return nil
	}
	before, err := a.before.program()
	a.sideEffect = !slices.Equal(programOf(a.after.ID, program), programOf(a.after.ID, before))
	return err
}

// programOf returns the rows of a client's program.
func programOf(client domain.ClientID, courses []domain.ProgramCourse) []db.ProgramRow {
	program := make([]db.ProgramRow, len(courses))
	for n, p := range courses {
		program[n] = db.ProgramRow{ClientID: client, Position: n + 1, CourseID: p.Course.ID, DueAfterDays: p.Days(n)}
	}
	return program
}

// addClientEffects adjusts the partners' counters of clients that are not archived, sets up new clients, with the
// default program unless their record has a program, and replaces the programs of the records.
func addClientEffects(ctx context.Context, b *importingClients) error {
	for _, a := range b.updates {
		switch before, after := a.before.ArchivedAt != nil, a.after.ArchivedAt != nil; {
		case after && !before:
			b.CountClients(a.after.Partner, -1) // a client never changes its partner
		case before && !after:
			b.CountClients(a.after.Partner, 1)
		}
	}
	var inserted []db.ClientRow
	var withDefaultProgram []domain.ClientID
	for _, a := range b.inserts {
		inserted = append(inserted, a.after.ClientRow)
		if a.after.ArchivedAt == nil {
			b.CountClients(a.after.Partner, 1)
		}
		if !a.record.Program.Given {
			withDefaultProgram = append(withDefaultProgram, a.after.ID)
		}
	}
	if err := b.SetUpClients(ctx, inserted, withDefaultProgram); err != nil {
		return err
	}
	return replacePrograms(ctx, b)
}

// replacePrograms replaces the programs of clients whose records have a different program (sideEffect of finishClient).
func replacePrograms(ctx context.Context, b *importingClients) error {
	var replaced []domain.ClientID
	var program []db.ProgramRow
	for _, a := range b.list {
		if id := a.record.ID.ID; a.sideEffect && !a.refused() {
			replaced, program = append(replaced, id), append(program, programOf(id, a.record.Program.Value)...)
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	err := pg.Run(ctx, b, "drop programs", pg.SQL(
		"DELETE FROM program_courses WHERE client_id = ANY(?::uuid[])", pg.IDs(replaced)))
	if err != nil {
		return err
	}
	return pg.CopyRows(ctx, b, "insert imported programs", program)
}

// rescoreSwitched recomputes the scores of clients whose Dark Web Monitoring was switched.
func rescoreSwitched(ctx context.Context, b *importingClients) error {
	for _, a := range b.updates {
		if a.before.DarkWebMonitoring == a.after.DarkWebMonitoring {
			continue
		}
		if err := b.RescoreClient(ctx, a.after.ID); err != nil {
			return err
		}
	}
	return nil
}

// Admins is the kind of admins of partners and of their clients. An email is unique within a client.
var Admins Kind = &kind[domain.AdminRecord, db.AdminRow]{
	object: "admin", partner: "a.partner_id = ?", order: "a.created_at, a.id", locked: "a.id",
	adjustRecord: func(r *db.AdminRow, out *domain.AdminRecord) error {
		if r.Client != nil {
			out.Partner = domain.Optional[domain.Ref[domain.PartnerKind]]{} // follows from the client
		}
		return nil
	},
	names: emailNames(
		func(r *db.AdminRow) *domain.ClientID { return r.Client }, func(r *db.AdminRow) string { return r.Email }),
	missingField: func(r *domain.AdminRecord) string {
		if r.Client.Given || r.Partner.Given {
			return ""
		}
		return "partner or client"
	},
	finish: func(b *recordBatch[domain.AdminRecord, db.AdminRow], a *recordChange[domain.AdminRecord, db.AdminRow]) error {
		if r := a.record; r.Client.Given && b.found.find(r.Client.Value).PartnerID != a.after.PartnerID {
			return errors.New("client: it is another partner's")
		}
		return nil
	},
}
