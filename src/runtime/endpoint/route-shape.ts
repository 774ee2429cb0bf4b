/** The same for two routes that no request can tell apart: the method, and the path without parameter names. */
export function routeShape(method: string, path: string): string {
  return `${method} ${path.replace(/:[^/]+/g, ':')}`
}
