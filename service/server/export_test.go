package server

// Route is a line of the table of routes.
type Route struct {
	Method, Path string
	Scope        Scope
	Stream       bool
	Documented   bool
	Bodies       []string // their media types
	Personalizer bool     // errors are in that service's shape
}

// Routes are all there are.
func (s *Server) Routes() []Route {
	var list []Route
	for _, rt := range s.routes() {
		r := Route{Method: rt.method, Path: rt.path, Scope: rt.scope, Stream: rt.stream, Documented: rt.id != "", Personalizer: rt.contract != nil}
		for _, c := range rt.body {
			r.Bodies = append(r.Bodies, c.mediaType)
		}
		list = append(list, r)
	}
	return list
}
