package engine

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Values of settings, as they are written. Each function makes what sets a field of T: of a
// [Config], of a deployment, or with [OwnSetter] of what an engine alone has.

// OwnSetter makes what sets a field of a Config's own settings, which are a T.
func OwnSetter[T any](set func(*T, string) error) func(*Config, string) error {
	return func(c *Config, v string) error {
		own, _ := c.Own.(T)
		if err := set(&own, v); err != nil {
			return err
		}
		c.Own = own
		return nil
	}
}

// IntegerSetter sets a whole number of at least 0.
func IntegerSetter[T any](p func(*T) *int) func(*T, string) error {
	return func(t *T, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 1<<31 {
			return fmt.Errorf("%q is not a whole number", v)
		}
		*p(t) = n
		return nil
	}
}

// PositiveSetter sets a whole number of at least 1.
func PositiveSetter[T any](p func(*T) *int) func(*T, string) error {
	set := IntegerSetter(p)
	return func(t *T, v string) error {
		if err := set(t, v); err != nil {
			return err
		}
		if *p(t) == 0 {
			return errors.New("it must be at least 1")
		}
		return nil
	}
}

// NumberSetter sets a number of at least 0.
func NumberSetter[T any](p func(*T) *float64) func(*T, string) error {
	return func(t *T, v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			return fmt.Errorf("%q is not a number of at least 0", v)
		}
		*p(t) = f
		return nil
	}
}

// BooleanSetter sets true or false.
func BooleanSetter[T any](p func(*T) *bool) func(*T, string) error {
	return func(t *T, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*p(t) = b
		return nil
	}
}

// NegatedSetter sets the opposite.
func NegatedSetter[T any](p func(*T) *bool) func(*T, string) error {
	set := BooleanSetter(p)
	return func(t *T, v string) error {
		if err := set(t, v); err != nil {
			return err
		}
		*p(t) = !*p(t)
		return nil
	}
}

// DurationSetter sets a length of time.
func DurationSetter[T any](p func(*T) *time.Duration) func(*T, string) error {
	return func(t *T, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration such as 300us", v)
		}
		*p(t) = d
		return nil
	}
}
