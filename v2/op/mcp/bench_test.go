package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/v2/op/mcp"
)

// BenchmarkMessages measures what MCP adds to an operation, which here answers with a text that is ready.
func BenchmarkMessages(b *testing.B) {
	const user = `{"id":"usr_01h455vb4pex5vsknk084sn02q","email":"user%d@example.com","first_name":"Zoë","last_name":"User","group":{"id":` +
		`"col_01h455vb4pex5vsknk084sn02q","name":"Manual"},"risk":{"score":612.5,"grade":"B"},"training":{"overdue":1},"active":true}`
	rows := make([]string, 100)
	for i := range rows {
		rows[i] = fmt.Sprintf(user, i)
	}
	page := `{"data":[` + strings.Join(rows, ",") + `],"page":{"next_cursor":null,"has_more":false}}`
	engine := served(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := rows[0]
		if strings.HasSuffix(r.URL.Path, "/users") {
			text = page
		}
		_, _ = w.Write([]byte(text))
	}))
	one, many := callOf("users_get", map[string]string{"user_id": "usr"}), callOf("users_list", map[string]string{"client_id": "cli"})
	for _, c := range []struct{ name, query, message string }{
		{"tool", "", one}, {"tool+schemas", "?schemas=1", one}, {"page", "", many}, {"page+schemas", "?schemas=1", many},
		{"tools", "", listTools}, {"tools+schemas", everything, listTools},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, mcp.Path+c.query, strings.NewReader(c.message))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("X-API-Key", "pk_demo_key")
				answer := httptest.NewRecorder()
				if engine.ServeHTTP(answer, r); answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), `"isError":true`) {
					b.Fatalf("%d %.300s", answer.Code, answer.Body)
				}
			}
		})
	}
}
