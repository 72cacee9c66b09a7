package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"partnerapi/domain"
)

// reference is what somebody would write by hand, who wants the same answers
// and nothing else: bare Gin, a pool of pgx, and encoding/json. It checks no
// key, counts nothing and logs nothing.
type reference struct {
	pool    *pgxpool.Pool
	partner string
}

func newReference(ctx context.Context) (http.Handler, error) {
	config, err := pgxpool.ParseConfig(os.Getenv(envURL))
	if err != nil {
		return nil, err
	}
	config.MaxConns = 20 // as the service has
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	r := &reference{pool: pool, partner: os.Getenv(envPartner)}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/v2/clients/:client_id", r.client)
	engine.GET("/v2/clients", r.clients)
	engine.GET("/v2/clients/:client_id/users", r.users)
	return engine, nil
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
		ClickRate90d  float64 `json:"click_rate_90d"`
		ReportRate90d float64 `json:"report_rate_90d"`
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
	framework_ids, dark_web_monitoring, directory_sync`

func scanClient(row pgx.Row) (c shownClient, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &c.Name, &c.nameKey, &c.Industry, &c.ExternalID, &c.CreatedAt.Time, &c.UpdatedAt.Time,
		&c.Users.Active, &c.Users.Inactive,
		&c.Risk.AverageScore, &c.Risk.HighRiskUsers, &c.Training.OnTrackRate, &c.Training.OverdueUsers,
		&c.Phishing.ClickRate90d, &c.Phishing.ReportRate90d,
		&c.Frameworks, &c.Features.DarkWebMonitoring, &c.Features.DirectorySync)
	c.ID = domain.ClientID(id.Bytes).String()
	c.Risk.Grade = grade(c.Risk.AverageScore)
	return c, err
}

func grade(score int) string {
	switch {
	case score >= 800:
		return "A"
	case score >= 700:
		return "B"
	case score >= 600:
		return "C"
	case score >= 400:
		return "D"
	}
	return "F"
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

// page is the answer of the list.
type page struct {
	Data []shownClient `json:"data"`
	Page struct {
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	} `json:"page"`
}

// clients is the first page, by name.
func (r *reference) clients(c *gin.Context) {
	var limit int
	if _, err := fmt.Sscan(c.Query("limit"), &limit); err != nil || limit < 1 || limit > 500 {
		c.JSON(http.StatusBadRequest, gin.H{"error": "bad limit"})
		return
	}
	p, err := r.page(c.Request.Context(), limit)
	if err != nil {
		c.JSON(http.StatusInternalServerError, gin.H{"error": "internal"})
		return
	}
	body, err := json.Marshal(p)
	if err != nil {
		c.JSON(http.StatusInternalServerError, gin.H{"error": "internal"})
		return
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", body)
}

func (r *reference) page(ctx context.Context, limit int) (*page, error) {
	rows, err := r.pool.Query(ctx, "SELECT "+clientColumns+` FROM clients
		WHERE partner_id = $1 AND archived_at IS NULL ORDER BY name_key, id LIMIT $2`, r.partner, limit+1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	p := &page{Data: make([]shownClient, 0, limit+1)}
	for rows.Next() {
		client, err := scanClient(rows)
		if err != nil {
			return nil, err
		}
		p.Data = append(p.Data, client)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(p.Data) > limit {
		p.Data = p.Data[:limit]
		last := p.Data[limit-1]
		cursor := base64.RawURLEncoding.EncodeToString([]byte(last.nameKey + "\x00" + last.ID))
		p.Page.NextCursor, p.Page.HasMore = &cursor, true
	}
	return p, nil
}
