/** Methods that a route can have; a method's number is its place here. HEAD is answered for every GET. */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
