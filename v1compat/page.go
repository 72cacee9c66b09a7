package v1compat

import (
	"fmt"
	"reflect"

	"partnerapi/domain"
)

// Paging is the page of every list of v1.
type Paging[Item any] struct {
	Items  []Item `json:"items" doc:"The items of this page."`
	Limit  int    `json:"limit" doc:"How many items were returned at the most: the limit, moved into its bounds."`
	Offset int    `json:"offset" doc:"How many items were passed over."`
	Total  int    `json:"total" doc:"Number of items in the whole list."`
}

// asked is one page as it is asked for, its limit within the bounds.
type asked struct{ limit, offset int }

// windowed is the Query of a list: one of the types below, each with the limit
// of its lists.
type windowed interface{ asked() asked }

// window is the offset that every list takes.
type window struct {
	Offset integer `query:"offset" default:"0" doc:"How many items to pass over."`
}

func (w window) upTo(most int, limit integer) asked {
	return asked{limit: min(max(int(limit), 1), most), offset: int(w.Offset)}
}

// upTo50 is the window of most lists.
type upTo50 struct {
	Limit integer `query:"limit" default:"20" doc:"How many items to return, 1 to 50. Others are moved to the bound."`
	window
}

func (w upTo50) asked() asked { return w.upTo(50, w.Limit) }

// upTo1000 is the window of longer lists.
type upTo1000 struct {
	Limit integer `query:"limit" default:"200" doc:"How many items to return, 1 to 1000. Others are moved to the bound."`
	window
}

func (w upTo1000) asked() asked { return w.upTo(1000, w.Limit) }

// pageOf reads the page off a list's input.
func pageOf(in any) (asked, error) {
	q, ok := reflect.ValueOf(in).Elem().FieldByName("Query").Interface().(windowed)
	if !ok {
		return asked{}, fmt.Errorf("%T has no window", in)
	}
	page := q.asked()
	if page.offset < 0 {
		return asked{}, domain.ErrInvalid("offset", "must be at least 0")
	}
	return page, nil
}
