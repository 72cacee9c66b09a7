package records

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Imports and exports of training: the rounds of courses that users were assigned.

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
// event and no mail. A round begins once the round before it is completed.
var Training Kind = &kind[domain.TrainingRecord, importedTraining]{
	object: "training_assignment", partner: ofPartner("a"), order: "a.client_id, a.user_id, a.course_id, a.round",
	columns:      "md5(a.user_id || '/' || a.course_id || '/' || a.round)::uuid AS id",
	adjustRecord: adjustTraining,
	key: func(r *domain.TrainingRecord) any {
		return trainingKey{r.User.Value.ID, r.Course.Value.ID, r.Round.Or(1)}
	},
	begin: beginTraining,
	setDefaults: func(r *importedTraining) {
		r.Round, r.Direct, r.Frameworks = 1, true, []domain.FrameworkAssignmentID{}
	},
	finish: finishTraining, prepare: placeTraining, afterStore: addTrainingEffects,
}

type (
	importingTraining = recordBatch[domain.TrainingRecord, importedTraining]
	appliedTraining   = recordChange[domain.TrainingRecord, importedTraining]
)

// adjustTraining sets the reasons of an exported record, and leaves out a first round's number.
func adjustTraining(r *importedTraining, out *domain.TrainingRecord) error {
	if r.Round == 1 {
		out.Round = domain.Optional[int]{}
	}
	reasons := []domain.TrainingReason{}
	if r.FromProgram {
		reasons = append(reasons, domain.TrainingReason{Program: true})
	}
	if r.Direct {
		reasons = append(reasons, domain.TrainingReason{Direct: true})
	}
	for _, id := range sortedUnique(slices.Clone(r.Frameworks)) {
		reasons = append(reasons, domain.TrainingReason{Framework: domain.RefTo(id)})
	}
	out.Reasons = domain.Give(reasons)
	return nil
}

// beginTraining locks the users, and all rounds of the courses that the records name.
func beginTraining(ctx context.Context, b *importingTraining) error {
	if _, err := b.LockUserKeys(ctx, pg.SQL("u.id = ANY(?::uuid[])", b.found.ids(domain.UserID{}.Prefix()))); err != nil {
		return err
	}
	var clients []domain.ClientID
	var users []domain.UserID
	var courses []domain.CourseID
	for _, a := range b.list {
		user := b.found.find(a.record.User.Value)
		if user == nil { // check refuses the record
			continue
		}
		clients, users = append(clients, user.ClientID), append(users, a.record.User.Value.ID)
		courses = append(courses, a.record.Course.Value.ID)
	}
	rows, err := pg.All[importedTraining](ctx, b, "lock training", pg.SQL(`
		SELECT `+pg.Columns[importedTraining]()+` FROM (
			SELECT DISTINCT * FROM unnest(?::uuid[], ?::uuid[], ?::uuid[]) AS k (client_id, user_id, course_id) ORDER BY 1, 2, 3
		) AS l CROSS JOIN LATERAL (
			SELECT * FROM assignments
			WHERE client_id = l.client_id AND user_id = l.user_id AND course_id = l.course_id
			ORDER BY round FOR NO KEY UPDATE
		) AS a`, pg.IDs(clients), pg.IDs(users), pg.IDs(courses)))
	b.keep(rows)
	return err
}

// finishTraining sets the reasons and what follows from the times of a round. It returns an error for a round that
// contradicts the rounds before and after it.
func finishTraining(b *importingTraining, a *appliedTraining) error {
	row := a.after
	if row.DueOn.Before(domain.DateOf(time.Unix(0, 0))) {
		return errors.New("due_on must not be before 1970")
	}
	if err := setReasons(b, a); err != nil {
		return err
	}
	if err := checkRounds(b, a); err != nil {
		return err
	}
	if a.before == nil || row.DueOn != a.before.DueOn {
		row.OverdueNoted = row.DueOn.Before(domain.DateOf(b.At)) // no event says so
	}
	switch {
	case a.before == nil:
		row.GivenAt = &b.At
	case !reflect.DeepEqual(a.before, row):
		at := domain.Later(domain.OrZero(row.ChangedAt), b.At)
		row.ChangedAt = &at
	}
	return nil
}

// setReasons sets the reasons that a record gives. It returns an error for a framework assignment that the client does
// not have.
func setReasons(b *importingTraining, a *appliedTraining) error {
	if !a.record.Reasons.Given {
		return nil
	}
	program, direct, frameworks := false, false, []domain.FrameworkAssignmentID{}
	for n, r := range a.record.Reasons.Value {
		switch {
		case r.Program:
			program = true
		case r.Direct:
			direct = true
		case !b.found.find(r.Framework).isOf(a.after.ClientID):
			return fmt.Errorf("reasons[%d]: %s of the client", n, domain.NoSuchObject(r.Framework.Noun()))
		default:
			frameworks = append(frameworks, r.Framework.ID)
		}
	}
	a.after.FromProgram, a.after.Direct = program, direct
	frameworks = sortedUnique(frameworks)
	if !slices.Equal(frameworks, sortedUnique(slices.Clone(a.after.Frameworks))) {
		a.after.Frameworks = frameworks
	}
	return nil
}

// checkRounds returns an error if the round before a round is not completed, or if a round that is open has another
// after it. In the first case the error is a clashError: a later line may complete that round.
func checkRounds(b *importingTraining, a *appliedTraining) error {
	before, after := a.after.key(), a.after.key()
	before.round--
	after.round++
	switch earlier := b.byKey[before]; {
	case before.round > 0 && (earlier == nil || earlier.CompletedAt == nil):
		return clashError(fmt.Sprintf("round: the user has not completed round %d of the course", before.round))
	case b.byKey[after] != nil && a.after.CompletedAt == nil:
		return fmt.Errorf("completed_at is required: round %d of the course follows", after.round)
	}
	return nil
}

// placeTraining sets the positions of new rounds whose records have none: that of the round before, that of the program,
// or the end of the user's list.
func placeTraining(ctx context.Context, b *importingTraining) error {
	var placed []*importedTraining
	for _, a := range b.list {
		if !a.refused() && a.after.Position == 0 {
			placed = append(placed, a.after)
		}
	}
	if len(placed) == 0 {
		return nil
	}
	positions, err := pg.All[int](ctx, b, "find the positions of courses", pg.SQL(`
		SELECT coalesce(
			(SELECT max(a.position) FROM assignments AS a
				WHERE a.client_id = w.client_id AND a.user_id = w.user_id AND a.course_id = w.course_id),
			(SELECT min(p.position) FROM program_courses AS p WHERE p.client_id = w.client_id AND p.course_id = w.course_id),
			(SELECT greatest(max(a.position), ?::integer) FROM assignments AS a
				WHERE a.client_id = w.client_id AND a.user_id = w.user_id) + w.n)
		FROM unnest(?::uuid[], ?::uuid[], ?::uuid[]) WITH ORDINALITY AS w (client_id, user_id, course_id, n) ORDER BY w.n`,
		db.AppendedFrom,
		pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).ClientID }),
		pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).UserID }),
		pg.MapRows(placed, func(r **importedTraining) [16]byte { return (*r).CourseID })))
	if err != nil {
		return err
	}
	for i, r := range placed {
		r.Position = positions[i]
	}
	return nil
}

// addTrainingEffects marks rounds that others follow as superseded, and the courses after new and moved ones as changed,
// since their places in the list change. It recomputes the scores and the next due courses of the users.
func addTrainingEffects(ctx context.Context, b *importingTraining) error {
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
