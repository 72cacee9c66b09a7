package seal_test

import (
	"errors"
	"fmt"

	"partnerapi/platform/seal"
)

// A value opens where it was sealed for, and with an older key too: a new key is put
// before it, and values are sealed with the new one from then on.
func ExampleKeys() {
	older, newer := seal.NewKey(), seal.NewKey()
	keys, err := seal.ParseKeys(older)
	if err != nil {
		panic(err)
	}
	place := seal.Context("webhook", "01890a5d-ac96-774b-bcce-b302099a8057")
	sealed, err := keys.Seal([]byte("whsec_1"), place)
	if err != nil {
		panic(err)
	}
	rotated, err := seal.ParseKeys(newer + "," + older)
	if err != nil {
		panic(err)
	}

	plain, err := rotated.Open(sealed, place)
	fmt.Println(string(plain), err)
	_, err = rotated.Open(sealed, seal.Context("webhook", "01890a5d-ac96-774b-bcce-b302099a8058"))
	fmt.Println(errors.Is(err, seal.ErrAltered))
	// Output:
	// whsec_1 <nil>
	// true
}
