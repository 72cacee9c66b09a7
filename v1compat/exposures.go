package v1compat

import (
	"errors"
	"net/http"
	"time"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// ExposureCount is how many exposures a user has as v1 shows it.
type ExposureCount struct {
	ID                  UUID[domain.UserKind] `json:"id" doc:"UUID of the user."`
	Email               string                `json:"email" doc:"The user's address."`
	FirstName           string                `json:"first_name" doc:"First name; may be empty."`
	LastName            string                `json:"last_name" doc:"Last name; may be empty."`
	ResolvedExposures   int                   `json:"resolved_exposures" doc:"Number of exposures that are resolved today."`
	UnresolvedExposures int                   `json:"unresolved_exposures" doc:"Number of exposures that are not resolved today."`
}

// moment is an end of a period: a time, or a whole day (UTC).
type moment struct {
	at  time.Time // the start of a day
	day bool
}

// UnmarshalText reads a timestamp or a date.
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

// JSONSchema says what a moment looks like, for the document.
func (moment) JSONSchema() string { return `{"type":"string"}` }

// from is the moment as the first of a period.
func (m *moment) from() *domain.Time {
	if m == nil {
		return nil
	}
	return &domain.Time{Time: m.at}
}

// through is the moment as the last of a period, for v2, whose periods end
// before their end: the next the database can hold, or the next day. After the
// last that can be written there is no end.
func (m *moment) through() *domain.Time {
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

func (f *Facade) exposureRoutes(api *v2.API) {
	list(f, Meta{
		ID: "exposures", Method: "GET", Path: "/clients/:client_id/darkweb/exposures", Status: http.StatusOK,
		Summary: "Get Dark Web Exposures",
		Description: "Returns every active user with the numbers of exposures, also users without any. Whether " +
			"exposures are resolved is as of today. Forbidden where Dark Web Monitoring is not enabled.",
		Fields: map[string]string{"since": "start", "until": "end"},
	}, api.ListDarkWebUsers, fromListExposures, toExposureCount)
}

func fromListExposures(in *listExposures) (*v2.ListDarkWebUsers, *op.Paging) {
	out := &v2.ListDarkWebUsers{}
	out.Path.ClientID = in.Path.ClientID.ID
	out.Query.Since, out.Query.Until = in.Query.Start.from(), in.Query.End.through()
	return out, &out.Query.Paging
}

func toExposureCount(u v2.DarkWebUser) ExposureCount {
	return ExposureCount{
		ID: uuidOf(u.UserID), Email: u.Email, FirstName: u.FirstName, LastName: u.LastName,
		ResolvedExposures: u.ResolvedExposures, UnresolvedExposures: u.UnresolvedExposures,
	}
}
