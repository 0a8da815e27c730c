package engine

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Assign sets what a setting stands for to a value as it is written: the field that to points to,
// a whole number, a number, true or false, a length of time or a text; or what a function makes
// of it. Numbers are at least 0.
func Assign(to any, value string) error {
	switch to := to.(type) {
	case func(string) error:
		return to(value)
	case *int:
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > 1<<31 {
			return fmt.Errorf("%q is not a whole number", value)
		}
		*to = n
	case *float64:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
			return fmt.Errorf("%q is not a number of at least 0", value)
		}
		*to = f
	case *bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", value)
		}
		*to = b
	case *time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is not a duration such as 300us", value)
		}
		*to = d
	case *string:
		*to = value
	default:
		panic(fmt.Sprintf("engine: a setting of type %T", to)) // else its value would be lost
	}
	return nil
}

// Positive sets a whole number of at least 1.
func Positive(field *int) func(string) error {
	return func(value string) error {
		if err := Assign(field, value); err != nil {
			return err
		}
		if *field == 0 {
			return errors.New("it must be at least 1")
		}
		return nil
	}
}

// Negated sets the opposite.
func Negated(field *bool) func(string) error {
	return func(value string) error {
		if err := Assign(field, value); err != nil {
			return err
		}
		*field = !*field
		return nil
	}
}

// OwnField is a [Setting]'s field among those that an engine alone has, which are a T.
func OwnField[T any](field func(*T) any) func(*Config) any {
	return func(c *Config) any {
		return func(value string) error {
			own, _ := c.Own.(T)
			if err := Assign(field(&own), value); err != nil {
				return err
			}
			c.Own = own
			return nil
		}
	}
}
