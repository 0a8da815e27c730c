package predict

import (
	"math"
	"slices"
)

// The little of matrices that a fit needs: rows of equal length, a dozen of them.

// weightedProduct is A·diag(w)·Bᵀ.
func weightedProduct(a, b [][]float64, w []float64) [][]float64 {
	m := newMatrix(len(a), len(b))
	for i := range m {
		for j := range m[i] {
			for l := range w {
				m[i][j] += a[i][l] * w[l] * b[j][l]
			}
		}
	}
	return m
}

// newMatrix is a matrix of zeros.
func newMatrix(rows, columns int) [][]float64 {
	m := make([][]float64, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

// zeroMatrix is a square matrix of zeros.
func zeroMatrix(n int) [][]float64 { return newMatrix(n, n) }

// cloneMatrix is a copy.
func cloneMatrix(m [][]float64) [][]float64 {
	out := make([][]float64, len(m))
	for i := range m {
		out[i] = slices.Clone(m[i])
	}
	return out
}

// identityMatrix has ones on its diagonal.
func identityMatrix(n int) [][]float64 {
	m := zeroMatrix(n)
	for i := range m {
		m[i][i] = 1
	}
	return m
}

func multiplyMatrices(a, b [][]float64) [][]float64 {
	m := zeroMatrix(len(a))
	for i := range m {
		for j := range m {
			for k := range b {
				m[i][j] += a[i][k] * b[k][j]
			}
		}
	}
	return m
}

func trace(m [][]float64) (sum float64) {
	for i := range m {
		sum += m[i][i]
	}
	return sum
}

// eigen gives the eigenvalues of a symmetric matrix and its eigenvectors, one in each
// column, by Jacobi's rotations.
func eigen(m [][]float64) (values []float64, vectors [][]float64) {
	n := len(m)
	a, v := cloneMatrix(m), identityMatrix(n)
	for range 30 {
		for p := range n {
			for q := p + 1; q < n; q++ {
				if math.Abs(a[p][q]) < 1e-14*(math.Abs(a[p][p])+math.Abs(a[q][q]))+1e-300 {
					continue
				}
				theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
				t := math.Copysign(1, theta) / (math.Abs(theta) + math.Sqrt(theta*theta+1))
				c := 1 / math.Sqrt(t*t+1)
				s := t * c
				for k := range n {
					a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
				}
				for k := range n {
					a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
					v[k][p], v[k][q] = c*v[k][p]-s*v[k][q], s*v[k][p]+c*v[k][q]
				}
			}
		}
	}
	for i := range n {
		values = append(values, a[i][i])
	}
	return values, v
}

// nearestPositive is the symmetric matrix that is nearest to one and has no negative
// eigenvalue.
func nearestPositive(m [][]float64) [][]float64 {
	values, v := eigen(m)
	out := zeroMatrix(len(m))
	for i := range out {
		for j := range out {
			for k, x := range values {
				out[i][j] += v[i][k] * max(x, 0) * v[j][k]
			}
		}
	}
	return out
}

// invertMatrix of a symmetric positive definite matrix, by Gauss and Jordan.
func invertMatrix(m [][]float64) [][]float64 {
	n := len(m)
	inv := identityMatrix(n)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[pivot][c]) {
				pivot = r
			}
		}
		m[c], m[pivot], inv[c], inv[pivot] = m[pivot], m[c], inv[pivot], inv[c]
		d := m[c][c]
		for j := range n {
			m[c][j] /= d
			inv[c][j] /= d
		}
		for r := range n {
			if f := m[r][c]; r != c && f != 0 {
				for j := range n {
					m[r][j] -= f * m[c][j]
					inv[r][j] -= f * inv[c][j]
				}
			}
		}
	}
	return inv
}
