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
var Clients = declare[clients](kind[domain.ClientRecord, importedClient]{
	object: "client", partner: "c.partner_id = ?", order: "c.created_at, c.id", rank: db.ClientLocks, locked: "c.id",
	columns: `(
		SELECT coalesce(json_agg(json_build_object('course', p.course_id, 'due_after_days', p.due_after_days)
			ORDER BY p.position), '[]')::text
		FROM program_courses AS p WHERE p.client_id = c.id) AS program,
		(SELECT p.archived_at IS NOT NULL FROM partners AS p WHERE p.id = c.partner_id) AS partner_archived`,
	unique: &unique{
		field: "name", column: "name_key",
		held: "t.partner_id = k.scope::uuid AND t.name_key = k.key AND t.archived_at IS NULL",
	},
})

type clients struct {
	batch[domain.ClientRecord, importedClient]
	programs map[domain.ClientID][]db.ProgramRow // the new programs of clients whose records change them
}

func (b *clients) create(in *domain.ClientRecord, row *importedClient) {
	row.ID, row.CreatedAt, row.UpdatedAt = in.ID.ID, b.At, b.At
	row.DarkWebMonitoring, row.Frameworks = true, []string{}
	row.Summary = domain.EmptySummary(b.At.Add(-2 * domain.SummaryAge)) // stale, so that the first read computes it
}

// apply archives or restores the client, and notes its program if that changes. It refuses a program with a course that
// does not exist, or twice the same course, and a client of an archived partner that is not archived.
func (b *clients) apply(in *domain.ClientRecord, before, row *importedClient) error {
	setNameKey(domain.OrZero(before).Name, row.Name, &row.NameKey)
	b.setArchived(in.Archived, &row.ArchivedAt)
	if row.ArchivedAt == nil {
		partner := b.found.find(domain.RefTo(row.Partner)) // nil if the record does not name it
		if row.PartnerArchived || partner != nil && partner.Archived {
			return errors.New("partner is archived; first, restore it with partnerapi partners restore")
		}
	}
	b.touch(before, row, &row.UpdatedAt)
	if !in.Program.Given {
		return nil
	}

	program := programOf(row.ID, in.Program.Value)
	for i, p := range program {
		if course := in.Program.Value[i].Course; b.found.find(course) == nil {
			return noSuch("program", course)
		}
		if slices.IndexFunc(program, func(other db.ProgramRow) bool { return other.CourseID == p.CourseID }) < i {
			return fmt.Errorf("program contains the course %s twice", in.Program.Value[i].Course)
		}
	}
	if before != nil {
		if old, err := before.program(); err != nil || slices.Equal(program, programOf(row.ID, old)) {
			return err
		}
	}
	if b.programs == nil {
		b.programs = map[domain.ClientID][]db.ProgramRow{}
	}
	b.programs[row.ID] = program
	return nil
}

// program parses the client's program.
func (r *importedClient) program() ([]domain.ProgramCourse, error) {
	type object domain.ProgramCourse // without its UnmarshalText, which makes JSON expect an id only
	var list []object
	if err := json.Unmarshal([]byte(r.Program), &list); err != nil {
		return nil, fmt.Errorf("read the program of a client: %w", err)
	}
	return pg.MapRows(list, func(p *object) domain.ProgramCourse { return domain.ProgramCourse(*p) }), nil
}

// programOf returns the rows of a client's program.
func programOf(client domain.ClientID, courses []domain.ProgramCourse) []db.ProgramRow {
	program := make([]db.ProgramRow, len(courses))
	for n, p := range courses {
		program[n] = db.ProgramRow{ClientID: client, Position: n + 1, CourseID: p.Course.ID, DueAfterDays: p.Days(n)}
	}
	return program
}

// nameOf returns the name within the partner. That of an archived client need not be unique.
func (b *clients) nameOf(row *importedClient) (name, string) {
	if row.ArchivedAt != nil {
		return name{Scope: row.Partner.UUID()}, ""
	}
	return name{row.Partner.UUID(), row.NameKey}, ""
}

func (b *clients) changesMore(in *domain.ClientRecord) bool {
	_, ok := b.programs[in.ID.ID]
	return ok
}

// follow adjusts the partners' counters of clients that are not archived, sets up new clients, with the default
// program unless their record has a program, and replaces the programs that change.
func (b *clients) follow(ctx context.Context) error {
	for _, a := range slices.Concat(b.inserts, b.updates) {
		was, is := a.before != nil && a.before.ArchivedAt == nil, a.after.ArchivedAt == nil
		if was != is {
			b.CountClients(a.after.Partner, pg.Number(is)-pg.Number(was)) // a client never changes its partner
		}
	}
	var inserted []db.ClientRow
	var withDefaultProgram []domain.ClientID
	for _, a := range b.inserts {
		inserted = append(inserted, a.after.ClientRow)
		if !a.in.Program.Given {
			withDefaultProgram = append(withDefaultProgram, a.after.ID)
		}
	}
	if err := b.SetUpClients(ctx, inserted, withDefaultProgram); err != nil {
		return err
	}

	var replaced []domain.ClientID
	var program []db.ProgramRow
	for _, a := range b.list {
		if id := a.in.ID.ID; !a.refused() && b.changesMore(a.in) {
			replaced, program = append(replaced, id), append(program, b.programs[id]...)
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

// committed recomputes the scores of clients whose Dark Web Monitoring was switched.
func (b *clients) committed(ctx context.Context) error {
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

func (b *clients) complete(row *importedClient, out *domain.ClientRecord) error {
	program, err := row.program()
	out.Program, out.Archived = domain.Give(program), archivedField(row.ArchivedAt)
	return err
}
