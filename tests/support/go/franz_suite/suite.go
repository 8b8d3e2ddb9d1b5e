// Package franzsuite names the client whose own tests are compiled here.
package franzsuite

import _ "github.com/twmb/franz-go/pkg/kgo"
