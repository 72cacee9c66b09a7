package v1compat

import (
	"net/http"

	"partnerapi/v2/api"
)

// TrainingResult is v1's form of a user's course. It contains each value under both of its names: completed and passed,
// completed_date and passed_date (decisions 5.9).
type TrainingResult struct {
	Order         int    `json:"order" doc:"Position of the course in the user's list, starting at 1."`
	CourseName    string `json:"course_name" doc:"The course's title."`
	Completed     bool   `json:"completed" doc:"Whether the course is completed. False if the course is due again."`
	CompletedDate Time   `json:"completed_date" doc:"When the course was completed; 0001-01-01T00:00:00Z until then."`
	Passed        bool   `json:"passed" doc:"Same value as completed."`
	PassedDate    Time   `json:"passed_date" doc:"Same value as completed_date."`
}

type listTraining struct {
	Path  userPath
	Query struct{ upTo50 }
}

// addTrainingRoutes adds the route of training results.
func (f *Facade) addTrainingRoutes() {
	addList[listTraining](f, Meta{
		ID: "training", Method: "GET", Path: "/users/:user_id/training", Status: http.StatusOK,
		Summary:     "Get User Training Results",
		Description: "Returns the courses assigned to the user, sorted by `order`.",
		Fails:       []int{http.StatusNotFound},
	}, api.ListTraining, nil, toTrainingResult, nil)
}

// toTrainingResult leaves the dates of an open course zero, which v1 writes as the year 1.
func toTrainingResult(a api.Assignment) TrainingResult {
	out := TrainingResult{Order: a.Order, CourseName: a.Title}
	if a.CompletedAt != nil {
		out.Completed, out.CompletedDate = true, at(*a.CompletedAt)
	}
	out.Passed, out.PassedDate = out.Completed, out.CompletedDate // v2 has nothing else for them
	return out
}
