package v1test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

func fakeExchange(h *v2test.Harness, reg *idmap.Registry) {
	h.Engine.POST("/v1/ids/exchange", func(c *gin.Context) {
		var in struct {
			Kind string
			IDs  []any
		}
		if err := json.NewDecoder(c.Request.Body).Decode(&in); err != nil {
			h.T.Error(err)
		}
		kind, err := idmap.ParseKind(in.Kind)
		if err != nil {
			h.T.Error(err)
		}
		type pair struct {
			V1 any    `json:"v1"`
			V2 string `json:"v2"`
		}
		items := []pair{}
		for _, id := range in.IDs {
			entries, err := reg.Describe(c.Request.Context(), kind, fmt.Sprint(id))
			if err != nil {
				h.T.Error(err)
			}
			for _, e := range entries {
				items = append(items, pair{e.Number, show(kind, e.ID)})
			}
		}
		c.Header("X-Request-Id", c.GetHeader("X-Request-Id"))
		c.Header("X-RateLimit-Limit", "1000000")
		c.Header("X-RateLimit-Remaining", "1000000")
		c.Header("X-RateLimit-Reset", fmt.Sprint(time.Now().Unix()+60))
		c.JSON(200, gin.H{"items": items, "invalid": []any{}})
	})
}

func show(k idmap.Kind, id idmap.UUID) string {
	switch k {
	case idmap.Client:
		return domain.ClientID(id).String()
	case idmap.Collection:
		return domain.CollectionID(id).String()
	case idmap.Policy:
		return domain.PolicyID(id).String()
	case idmap.Group:
		return domain.GroupID(id).String()
	}
	return domain.ReportID(id).String()
}
