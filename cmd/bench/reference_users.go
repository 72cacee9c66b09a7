package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"partnerapi/domain"
)

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

// userPage is the answer of the list.
type userPage struct {
	Data []shownUser `json:"data"`
	Page struct {
		NextCursor *string `json:"next_cursor"`
		HasMore    bool    `json:"has_more"`
	} `json:"page"`
}

const usersQuery = `
	SELECT u.id, u.email, u.first_name, u.last_name, u.department, u.job_title, u.manager_email, u.status, u.role,
		u.preferred_language, u.source, u.created_at, u.updated_at, u.score, g.id, g.name, c.id, c.title, u.next_due_on,
		CASE WHEN u.next_due_on < $2::date THEN (
			SELECT count(*) FROM assignments AS a
			WHERE a.client_id = u.client_id AND a.user_id = u.id AND a.completed_at IS NULL AND a.due_on < $2::date
		) ELSE 0 END
	FROM users AS u
	LEFT JOIN groups AS g ON g.client_id = u.client_id AND g.id = u.group_id
	LEFT JOIN courses AS c ON c.id = u.next_course_id
	WHERE u.client_id = $1 ORDER BY u.created_at, u.id LIMIT $3`

// users is the first page of a client's users, by creation.
func (r *reference) users(c *gin.Context) {
	id, err := domain.ParseID[domain.ClientKind](c.Param("client_id"))
	var limit int
	if _, e := fmt.Sscan(c.Query("limit"), &limit); err != nil || e != nil || limit < 1 || limit > 500 {
		c.JSON(http.StatusBadRequest, gin.H{"error": "bad request"})
		return
	}
	p, err := r.userPage(c.Request.Context(), id, limit)
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

func (r *reference) userPage(ctx context.Context, client domain.ClientID, limit int) (*userPage, error) {
	var known bool
	err := r.pool.QueryRow(ctx, "SELECT true FROM clients WHERE id = $1 AND partner_id = $2 AND archived_at IS NULL",
		pgtype.UUID{Bytes: client, Valid: true}, r.partner).Scan(&known)
	if err != nil {
		return nil, err
	}
	rows, err := r.pool.Query(ctx, usersQuery, pgtype.UUID{Bytes: client, Valid: true}, time.Now().UTC(), limit+1)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	p := &userPage{Data: make([]shownUser, 0, limit+1)}
	clientID := client.String()
	for rows.Next() {
		u, err := scanUser(rows)
		if err != nil {
			return nil, err
		}
		u.ClientID = clientID
		p.Data = append(p.Data, u)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(p.Data) > limit {
		p.Data = p.Data[:limit]
		last := p.Data[limit-1]
		cursor := base64.RawURLEncoding.EncodeToString([]byte(last.CreatedAt.Format(time.RFC3339Nano) + "\x00" + last.ID))
		p.Page.NextCursor, p.Page.HasMore = &cursor, true
	}
	return p, nil
}

func scanUser(row pgx.Row) (u shownUser, err error) {
	var id, group, course pgtype.UUID
	var groupName, title *string
	var due *time.Time
	err = row.Scan(&id, &u.Email, &u.FirstName, &u.LastName, &u.Department, &u.JobTitle, &u.ManagerEmail, &u.Status,
		&u.Role,
		&u.PreferredLanguage, &u.Source, &u.CreatedAt.Time, &u.UpdatedAt.Time, &u.Risk.Score, &group, &groupName, &course,
		&title, &due,
		&u.Training.OverdueCount)
	if err != nil {
		return u, err
	}
	u.ID = domain.UserID(id.Bytes).String()
	u.Risk.Grade = grade(u.Risk.Score)
	u.Training.OnTrack = u.Training.OverdueCount == 0
	if group.Valid {
		u.Group = &shownGroup{domain.GroupID(group.Bytes).String(), *groupName}
	}
	if course.Valid {
		u.Training.NextCourse = &shownCourse{domain.CourseID(course.Bytes).String(), *title, due.Format(time.DateOnly)}
	}
	return u, nil
}
