package v1compat

import (
	"net/http"

	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// TrainingResult is a course of a user as v1 shows it, in both of its
// spellings (decisions 5.9).
type TrainingResult struct {
	Order         int    `json:"order"`
	CourseName    string `json:"course_name"`
	Completed     bool   `json:"completed"`
	CompletedDate Time   `json:"completed_date" doc:"0001-01-01T00:00:00Z while the course is not completed."`
	Passed        bool   `json:"passed"`
	PassedDate    Time   `json:"passed_date" doc:"0001-01-01T00:00:00Z while the course is not completed."`
}

type listTraining struct {
	Path  userPath
	Query struct{ upTo50 }
}

func (f *Facade) trainingRoutes(api *v2.API) {
	list(f, Meta{
		ID: "training", Method: "GET", Path: "/users/:user_id/training", Status: http.StatusOK,
		Summary: "Get User Training Results",
		Fails:   []int{http.StatusNotFound},
	}, api.ListTraining, fromListTraining, toTrainingResult)
}

func fromListTraining(in *listTraining) (*v2.ListTraining, *op.Paging) {
	out := &v2.ListTraining{}
	out.Path.UserID = in.Path.UserID.ID
	return out, &out.Query.Paging
}

// toTrainingResult leaves the dates of an open course zero, which v1 writes as
// the first day of all.
func toTrainingResult(a v2.Assignment) TrainingResult {
	out := TrainingResult{Order: a.Order, CourseName: a.Title}
	if a.CompletedAt != nil {
		out.Completed, out.CompletedDate = true, at(*a.CompletedAt)
	}
	out.Passed, out.PassedDate = out.Completed, out.CompletedDate
	return out
}
