package v1compat

import (
	"errors"
	"net/http"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// ExposureCount is v1's form of a user's number of exposures.
type ExposureCount struct {
	ID                  UUID[domain.UserKind] `json:"id" doc:"UUID of the user."`
	Email               string                `json:"email" doc:"The user's email address."`
	FirstName           string                `json:"first_name" doc:"First name. Can be empty."`
	LastName            string                `json:"last_name" doc:"Last name. Can be empty."`
	ResolvedExposures   int                   `json:"resolved_exposures" doc:"Number of the user's exposures that are currently resolved."`
	UnresolvedExposures int                   `json:"unresolved_exposures" doc:"Number of the user's exposures that are currently unresolved."`
}

// moment is the start or the end of a period: a time, or a whole day (UTC).
type moment struct {
	at  time.Time // the time, or the start of the day
	day bool
}

// UnmarshalText parses a timestamp or a date.
func (m *moment) UnmarshalText(text []byte) error {
	if day, err := domain.ParseDate(string(text)); err == nil {
		*m = moment{at: day.Time(), day: true}
		return nil
	}
	var at domain.Time
	if err := at.UnmarshalText(text); err != nil {
		return errors.New("must be a timestamp such as 2026-01-31T08:00:00Z, or a date such as 2026-01-31")
	}
	*m = moment{at: at.Time}
	return nil
}

// JSONSchema implements openapi.Described.
func (moment) JSONSchema() string { return `{"type":"string"}` }

// startTime returns the start of the moment, for the start of a period; nil for nil.
func (m *moment) startTime() *domain.Time {
	if m == nil {
		return nil
	}
	return &domain.Time{Time: m.at}
}

// endTime returns the end of the moment, for the end of a period of v2, which excludes its end: the next representable
// time, or the next day. It returns nil for nil, and beyond the year 9999.
func (m *moment) endTime() *domain.Time {
	if m == nil {
		return nil
	}
	next := m.at.Truncate(time.Microsecond).Add(time.Microsecond)
	if m.day {
		next = m.at.AddDate(0, 0, 1)
	}
	if next.Year() > 9999 {
		return nil
	}
	return &domain.Time{Time: next}
}

type listExposures struct {
	Path  clientPath
	Query struct {
		upTo1000
		Start *moment `query:"start" doc:"Only exposures found at or after this time or day (UTC)."`
		End   *moment `query:"end" doc:"Only exposures found up to this time, or through the end of this day (UTC)."`
	}
}

// addExposureRoutes adds the route of dark-web exposures.
func (f *Facade) addExposureRoutes() {
	addList(f, Meta{
		ID: "exposures", Method: "GET", Path: "/clients/:client_id/darkweb/exposures", Status: http.StatusOK,
		Summary: "Get Dark Web Exposures",
		Description: "Returns all active users, including users without exposures, with the numbers of currently resolved and unresolved exposures. " +
			"Returns 403 if Dark Web Monitoring is not enabled for the client.",
		Fields: map[string]string{"since": "start", "until": "end"},
	}, api.ListDarkWebUsers, fillListExposures, toExposureCount, nil)
}

func fillListExposures(in *listExposures, out *api.ListDarkWebUsersInput) {
	since, until := in.Query.Start.startTime(), in.Query.End.endTime()
	if since != nil && until != nil && !since.Time.Before(until.Time) { // the start is after the end, which v1 includes
		until = in.Query.End.startTime() // before since, so that v2 rejects them
	}
	out.Query.Since, out.Query.Until = since, until
}

func toExposureCount(u api.DarkWebUser) ExposureCount {
	return ExposureCount{
		ID: uuidOf(u.UserID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		ResolvedExposures: u.ResolvedExposures, UnresolvedExposures: u.UnresolvedExposures,
	}
}
