package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"partnerapi/domain"
)

// reference is what a developer would write by hand, who wants the same responses
// and nothing else: bare Gin, a pool of pgx, and encoding/json. It checks no
// key, counts nothing and logs nothing.
type reference struct {
	pool    *pgxpool.Pool
	partner string
}

func newReference(ctx context.Context, p params) http.Handler {
	return openReference(ctx, p, func(*pgxpool.Pool) []gin.HandlerFunc { return nil })
}

func openReference(ctx context.Context, p params, before func(*pgxpool.Pool) []gin.HandlerFunc) http.Handler {
	config := must(pgxpool.ParseConfig(p.URL))
	config.MaxConns = 20 // as the service has
	pool := must(pgxpool.NewWithConfig(ctx, config))
	r := &reference{pool: pool, partner: p.Partner.UUID()}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(before(pool)...)
	engine.GET("/v2/clients/:client_id", r.client)
	engine.GET("/v2/clients", r.clients)
	engine.GET("/v2/clients/:client_id/users", r.users)
	return engine
}

// shownClient is a client as v2 shows it, declared anew.
type shownClient struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Industry   *string   `json:"industry"`
	ExternalID *string   `json:"external_id"`
	CreatedAt  shownTime `json:"created_at"`
	UpdatedAt  shownTime `json:"updated_at"`
	Users      struct {
		Active   int `json:"active"`
		Inactive int `json:"inactive"`
	} `json:"users"`
	Risk struct {
		AverageScore  int    `json:"average_score"`
		Grade         string `json:"grade"`
		HighRiskUsers int    `json:"high_risk_users"`
	} `json:"risk"`
	Training struct {
		OnTrackRate  float64 `json:"on_track_rate"`
		OverdueUsers int     `json:"overdue_users"`
	} `json:"training"`
	Phishing struct {
		ClickRate90d   float64 `json:"click_rate_90d"`
		ReportRate90d  float64 `json:"report_rate_90d"`
		ClickRate365d  float64 `json:"click_rate_365d"`
		ClickRateTotal float64 `json:"click_rate_total"`
	} `json:"phishing"`
	Frameworks []string `json:"frameworks"`
	Features   struct {
		DarkWebMonitoring bool    `json:"dark_web_monitoring"`
		DirectorySync     *string `json:"directory_sync"`
	} `json:"features"`

	nameKey string
}

type shownTime struct{ time.Time }

func (t shownTime) MarshalJSON() ([]byte, error) {
	return t.UTC().AppendFormat(nil, `"2006-01-02T15:04:05.000000Z"`), nil
}

const clientColumns = `id, name, name_key, industry, external_id, created_at, updated_at, users_active, users_inactive,
	average_score, high_risk_users, on_track_rate, overdue_users, click_rate_90d, report_rate_90d,
	click_rate_365d, click_rate_total, framework_ids, dark_web_monitoring, directory_sync`

func scanClient(row pgx.Row) (c shownClient, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &c.Name, &c.nameKey, &c.Industry, &c.ExternalID, &c.CreatedAt.Time, &c.UpdatedAt.Time,
		&c.Users.Active, &c.Users.Inactive,
		&c.Risk.AverageScore, &c.Risk.HighRiskUsers, &c.Training.OnTrackRate, &c.Training.OverdueUsers,
		&c.Phishing.ClickRate90d, &c.Phishing.ReportRate90d, &c.Phishing.ClickRate365d, &c.Phishing.ClickRateTotal,
		&c.Frameworks, &c.Features.DarkWebMonitoring, &c.Features.DirectorySync)
	c.ID = domain.ClientID(id.Bytes).String()
	c.Risk.Grade = string(domain.GradeOf(c.Risk.AverageScore))
	return c, err
}

func (r *reference) client(c *gin.Context) {
	id, err := domain.ParseID[domain.ClientKind](c.Param("client_id"))
	if err != nil {
		c.JSON(http.StatusNotFound, gin.H{"error": "no such client"})
		return
	}
	row := r.pool.QueryRow(c.Request.Context(), "SELECT "+clientColumns+" FROM clients WHERE id = $1", uuid.UUID(id))
	client, err := scanClient(row)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		c.JSON(http.StatusNotFound, gin.H{"error": "no such client"})
	case err != nil:
		c.JSON(http.StatusInternalServerError, gin.H{"error": "internal"})
	default:
		c.JSON(http.StatusOK, client)
	}
}

// page is the response of a list.
type page[T any] struct {
	Data []T `json:"data"`
	Page struct {
		NextCursor *string   `json:"next_cursor"`
		HasMore    bool      `json:"has_more"`
		AsOf       shownTime `json:"as_of"`
	} `json:"page"`
}

// list answers with the first page of what a query with a limit finds: it reads one row
// more, to see whether there is one. last is where a page ends.
func list[T any](c *gin.Context, read func(limit int) (pgx.Rows, error), scan func(pgx.Row) (T, error),
	last func(T) string) {
	var limit int
	if _, err := fmt.Sscan(c.Query("limit"), &limit); err != nil || limit < 1 || limit > 500 {
		c.JSON(http.StatusBadRequest, gin.H{"error": "bad limit"})
		return
	}
	p := &page[T]{Data: make([]T, 0, limit+1)}
	p.Page.AsOf.Time = time.Now()
	rows, err := read(limit + 1)
	if err == nil {
		p.Data, err = pgx.AppendRows(p.Data, rows, func(row pgx.CollectableRow) (T, error) { return scan(row) })
	}
	if len(p.Data) > limit {
		p.Data = p.Data[:limit]
		cursor := base64.RawURLEncoding.EncodeToString([]byte(last(p.Data[limit-1])))
		p.Page.NextCursor, p.Page.HasMore = &cursor, true
	}
	body, failed := json.Marshal(p)
	if err := errors.Join(err, failed); err != nil {
		c.JSON(http.StatusInternalServerError, gin.H{"error": "internal"})
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", body)
}

// clients is the first page, by name.
func (r *reference) clients(c *gin.Context) {
	list(c, func(limit int) (pgx.Rows, error) {
		return r.pool.Query(c.Request.Context(), "SELECT "+clientColumns+` FROM clients
			WHERE partner_id = $1 AND archived_at IS NULL ORDER BY name_key, id LIMIT $2`, r.partner, limit)
	}, scanClient, func(c shownClient) string { return c.nameKey + "\x00" + c.ID })
}

// shownUser is a user of a list as v2 shows it, declared anew.
type shownUser struct {
	ID                string      `json:"id"`
	ClientID          string      `json:"client_id"`
	Email             string      `json:"email"`
	FirstName         string      `json:"first_name"`
	LastName          string      `json:"last_name"`
	Department        *string     `json:"department"`
	JobTitle          *string     `json:"job_title"`
	ManagerEmail      *string     `json:"manager_email"`
	Status            string      `json:"status"`
	Role              string      `json:"role"`
	PreferredLanguage string      `json:"preferred_language"`
	Source            string      `json:"source"`
	Group             *shownGroup `json:"group"`
	Training          struct {
		OnTrack      bool         `json:"on_track"`
		OverdueCount int          `json:"overdue_count"`
		NextCourse   *shownCourse `json:"next_course"`
	} `json:"training"`
	Phishing struct {
		Sent          int     `json:"sent"`
		Clicked       int     `json:"clicked"`
		ClickRate     float64 `json:"click_rate"`
		Sent365d      int     `json:"sent_365d"`
		Clicked365d   int     `json:"clicked_365d"`
		ClickRate365d float64 `json:"click_rate_365d"`
	} `json:"phishing"`
	CreatedAt shownTime `json:"created_at"`
	UpdatedAt shownTime `json:"updated_at"`
	Risk      struct {
		Score int    `json:"score"`
		Grade string `json:"grade"`
	} `json:"risk"`
}

type shownGroup struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type shownCourse struct {
	CourseID string `json:"course_id"`
	Title    string `json:"title"`
	DueOn    string `json:"due_on"`
}

const usersQuery = `
	SELECT u.id, u.email, u.first_name, u.last_name, u.department, u.job_title, u.manager_email, u.status, u.role,
		u.preferred_language, u.source, u.created_at, u.updated_at, u.score, g.id, g.name, c.id, c.title, u.next_due_on,
		CASE WHEN u.next_due_on < $2::date THEN (
			SELECT count(*) FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.completed_at IS NULL AND a.due_on < $2::date
		) ELSE 0 END,
		u.phished_sent, u.phished_clicked, u.phished_sent_year, u.phished_clicked_year
	FROM users AS u
	LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id
	LEFT JOIN courses AS c ON c.id = u.next_course_id
	WHERE u.client_id = $1 ORDER BY u.created_at, u.id LIMIT $3`

// users is the first page of a client's users, in order of creation.
func (r *reference) users(c *gin.Context) {
	client, err := domain.ParseID[domain.ClientKind](c.Param("client_id"))
	if err != nil {
		c.JSON(http.StatusBadRequest, gin.H{"error": "bad request"})
		return
	}
	ctx, clientID := c.Request.Context(), client.String()
	list(c, func(limit int) (pgx.Rows, error) {
		var known bool
		err := r.pool.QueryRow(ctx, "SELECT true FROM clients WHERE id = $1 AND partner_id = $2 AND archived_at IS NULL",
			pgtype.UUID{Bytes: client, Valid: true}, r.partner).Scan(&known)
		if err != nil {
			return nil, err
		}
		return r.pool.Query(ctx, usersQuery, pgtype.UUID{Bytes: client, Valid: true}, time.Now().UTC(), limit)
	}, func(row pgx.Row) (shownUser, error) {
		u, err := scanUser(row)
		u.ClientID = clientID
		return u, err
	}, func(u shownUser) string { return u.CreatedAt.Format(time.RFC3339Nano) + "\x00" + u.ID })
}

func scanUser(row pgx.Row) (u shownUser, err error) {
	var id, group, course pgtype.UUID
	var groupName, title *string
	var due *time.Time
	err = row.Scan(&id, &u.Email, &u.FirstName, &u.LastName, &u.Department, &u.JobTitle, &u.ManagerEmail, &u.Status, &u.Role,
		&u.PreferredLanguage, &u.Source, &u.CreatedAt.Time, &u.UpdatedAt.Time, &u.Risk.Score, &group, &groupName, &course, &title, &due,
		&u.Training.OverdueCount, &u.Phishing.Sent, &u.Phishing.Clicked, &u.Phishing.Sent365d, &u.Phishing.Clicked365d)
	if err != nil {
		return u, err
	}
	u.ID = domain.UserID(id.Bytes).String()
	u.Risk.Grade = string(domain.GradeOf(u.Risk.Score))
	u.Training.OnTrack = u.Training.OverdueCount == 0
	u.Phishing.ClickRate = domain.Percent(u.Phishing.Clicked, u.Phishing.Sent)
	u.Phishing.ClickRate365d = domain.Percent(u.Phishing.Clicked365d, u.Phishing.Sent365d)
	if group.Valid {
		u.Group = &shownGroup{domain.GroupID(group.Bytes).String(), *groupName}
	}
	if course.Valid {
		u.Training.NextCourse = &shownCourse{domain.CourseID(course.Bytes).String(), *title, due.Format(time.DateOnly)}
	}
	return u, nil
}
