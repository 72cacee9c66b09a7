package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedTraining is a row of assignments.
type importedTraining struct {
	bun.BaseModel `bun:"table:assignments,alias:a"`

	ClientID     domain.ClientID `bun:"client_id,pk"`
	UserID       domain.UserID   `bun:"user_id,pk"`
	CourseID     domain.CourseID `bun:"course_id,pk"`
	Round        int             `bun:"round,pk"`
	Superseded   bool
	Position     int
	FromProgram  bool
	Direct       bool
	Frameworks   []domain.FrameworkAssignmentID `bun:"frameworks,array"`
	AssignedAt   time.Time
	GivenAt      *time.Time
	DueOn        domain.Date
	StartedAt    *time.Time
	CompletedAt  *time.Time
	OverdueNoted bool
	ChangedAt    *time.Time `bun:"updated_at"`

	ID domain.TrainingID `bun:",scanonly"` // derived from the key
}

// trainingKey identifies a round of a course.
type trainingKey struct {
	user   domain.UserID
	course domain.CourseID
	round  int
}

func (r *importedTraining) key() trainingKey { return trainingKey{r.UserID, r.CourseID, r.Round} }

// Training is the kind of rounds of courses that users were assigned. An import of users and framework assignments
// makes those that follow from programs and frameworks; a record changes such a round, or adds another. It causes no
// event and no email. A round begins once the round before it is completed.
var Training = declare[training](kind[domain.TrainingRecord, importedTraining]{
	object: "training_assignment", partner: ofPartner("a"), order: "a.client_id, a.user_id, a.course_id, a.round",
	columns: "md5(a.user_id || '/' || a.course_id || '/' || a.round)::uuid AS id",
})

type training struct {
	batch[domain.TrainingRecord, importedTraining]
}

// lock locks the users, and all rounds of the courses that the records name.
func (b *training) lock(ctx context.Context) error {
	if _, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.found.ids(domain.UserID{}.Prefix()))); err != nil {
		return err
	}
	return lockHistory(ctx, &b.batch, "course_id", "uuid", func(in *domain.TrainingRecord) (domain.UserID, [16]byte) {
		return in.User.Value.ID, in.Course.Value.ID
	})
}

func (b *training) key(in *domain.TrainingRecord) any {
	return trainingKey{in.User.Value.ID, in.Course.Value.ID, in.Round.Or(1)}
}

func (b *training) create(in *domain.TrainingRecord, row *importedTraining) {
	row.ClientID, row.GivenAt = b.found.find(in.User.Value).ClientID, &b.At
	row.Round, row.Direct, row.Frameworks = 1, true, []domain.FrameworkAssignmentID{}
}

// apply sets the reasons and what follows from the times of a round. It returns an error for a round that contradicts
// the rounds before and after it.
func (b *training) apply(in *domain.TrainingRecord, before, row *importedTraining) error {
	if row.DueOn.Before(domain.DateOf(time.Unix(0, 0))) {
		return errors.New("due_on must not be before 1970")
	}
	if err := b.setReasons(in, row); err != nil {
		return err
	}
	if err := b.checkRounds(row); err != nil {
		return err
	}
	if before == nil || row.DueOn != before.DueOn {
		row.OverdueNoted = row.DueOn.Before(domain.DateOf(b.At)) // no event says so
	}
	if changed(before, row) {
		row.ChangedAt = new(domain.Later(domain.OrZero(row.ChangedAt), b.At))
	}
	return nil
}

// setReasons sets the reasons that a record gives. It returns an error for a framework assignment that the client does
// not have.
func (b *training) setReasons(in *domain.TrainingRecord, row *importedTraining) error {
	if !in.Reasons.Given {
		return nil
	}
	program, direct, frameworks := false, false, []domain.FrameworkAssignmentID{}
	for n, r := range in.Reasons.Value {
		switch {
		case r.Program:
			program = true
		case r.Direct:
			direct = true
		case !b.found.find(r.Framework).isOf(row.ClientID):
			return noneOfClient(fmt.Sprintf("reasons[%d]", n), r.Framework.Noun())
		default:
			frameworks = append(frameworks, r.Framework.ID)
		}
	}
	row.FromProgram, row.Direct = program, direct
	frameworks = sortedUnique(frameworks)
	if !slices.Equal(frameworks, sortedUnique(slices.Clone(row.Frameworks))) {
		row.Frameworks = frameworks
	}
	return nil
}

// checkRounds returns an error if the round before a round is not completed, or if a round that is open has another
// after it. In the first case the error is a clashError: a later line may complete that round.
func (b *training) checkRounds(row *importedTraining) error {
	before, after := row.key(), row.key()
	before.round--
	after.round++
	switch earlier := b.byKey[before]; {
	case before.round > 0 && (earlier == nil || earlier.CompletedAt == nil):
		return clashError(fmt.Sprintf("round: the user has not completed round %d of the course", before.round))
	case b.byKey[after] != nil && row.CompletedAt == nil:
		return fmt.Errorf("completed_at is required, because the user also has round %d of the course", after.round)
	}
	return nil
}

// store first sets the positions of new rounds whose records have none: that of the round before, that of the program,
// or the end of the user's list.
func (b *training) store(ctx context.Context) error {
	var placed []*importedTraining
	for _, a := range b.inserts {
		if a.after.Position == 0 {
			placed = append(placed, a.after)
		}
	}
	if len(placed) == 0 {
		return b.batch.store(ctx)
	}
	positions, err := pg.All[int](ctx, b, "find the positions of courses", pg.SQL(`
		SELECT coalesce(
			(SELECT max(a.position) FROM assignments AS a
				WHERE a.client_id = w.client_id AND a.user_id = w.user_id AND a.course_id = w.course_id),
			(SELECT min(p.position) FROM program_courses AS p WHERE p.client_id = w.client_id AND p.course_id = w.course_id),
			(SELECT greatest(max(a.position), ?appendedFrom::integer) FROM assignments AS a
				WHERE a.client_id = w.client_id AND a.user_id = w.user_id) + w.n)
		FROM unnest(?clients::uuid[], ?users::uuid[], ?courses::uuid[]) WITH ORDINALITY AS w (client_id, user_id, course_id, n) ORDER BY w.n`,
		pg.Named{
			"appendedFrom": db.AppendedFrom,
			"clients":      pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).ClientID }),
			"users":        pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).UserID }),
			"courses":      pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).CourseID }),
		}))
	if err != nil {
		return err
	}
	for i, r := range placed {
		r.Position = positions[i]
	}
	return b.batch.store(ctx)
}

// follow marks rounds that others follow as superseded, and the courses after new and moved ones as changed, since
// their places in the list change. It recomputes the scores and the next due courses of the users.
func (b *training) follow(ctx context.Context) error {
	var moved []importedTraining
	for _, a := range slices.Concat(b.inserts, b.updates) {
		user := domain.UserKey{Client: a.after.ClientID, User: a.after.UserID}
		b.Rescore(user)
		b.NextDueChanged(user)
		b.TouchUsers(user) // callers see how many courses are overdue
		if a.before == nil || a.before.Position != a.after.Position {
			moved = append(moved, *a.after)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	list := pg.Objects(moved)
	err := pg.Run(ctx, b, "supersede rounds", pg.SQL(`
		UPDATE assignments AS a SET superseded = true
		FROM json_populate_recordset(NULL::assignments, ?::json) AS n
		WHERE n.round > 1 AND a.client_id = n.client_id AND a.user_id = n.user_id AND a.course_id = n.course_id
			AND a.round = n.round - 1 AND NOT a.superseded`, list))
	if err != nil {
		return err
	}
	return pg.Run(ctx, b, "move courses", pg.SQL(`
		UPDATE assignments AS a SET updated_at = greatest(a.updated_at, ?1::timestamptz)
		FROM (
			SELECT DISTINCT ON (client_id, user_id) client_id, user_id, position, course_id
			FROM json_populate_recordset(NULL::assignments, ?0::json) WHERE round = 1
			ORDER BY client_id, user_id, position, course_id
		) AS n
		WHERE a.client_id = n.client_id AND a.user_id = n.user_id AND (a.position, a.course_id) > (n.position, n.course_id)
			AND a.given_at IS DISTINCT FROM ?1`, list, b.At))
}

// complete sets the reasons of an exported record, and leaves out a first round's number.
func (b *training) complete(row *importedTraining, out *domain.TrainingRecord) error {
	if row.Round == 1 {
		out.Round = domain.Optional[int]{}
	}
	reasons := []domain.TrainingReason{}
	if row.FromProgram {
		reasons = append(reasons, domain.TrainingReason{Program: true})
	}
	if row.Direct {
		reasons = append(reasons, domain.TrainingReason{Direct: true})
	}
	for _, id := range sortedUnique(slices.Clone(row.Frameworks)) {
		reasons = append(reasons, domain.TrainingReason{Framework: domain.RefTo(id)})
	}
	out.Reasons = domain.Give(reasons)
	return nil
}
