package loadgen

import "testing"

// With a total no more is sent than that: the window ends with the last answer.
func TestTotal(t *testing.T) {
	s := script{t, NewCore(Config{Users: 2, Requests: 3, Total: 3})}
	s.want(0, nil, "start 0", "start 1")
	s.want(10, []Event{{ID: 0, At: 10}}, "start 2")
	s.want(20, []Event{{ID: 1, At: 20}})
	s.want(30, []Event{{ID: 2, At: 30}})
	s.window(0, 30)
	s.over()

	s = script{t, NewCore(Config{Arrivals: &every{0, 10}, Cap: 1, Requests: 2, Total: 2})}
	s.want(0, nil, "start 0")
	s.want(25, []Event{{ID: 0, At: 25}}, "start 1 due 10 eligible 25")
	s.want(60, []Event{{ID: 1, At: 60}})
	s.window(0, 60)
	s.over()
}
