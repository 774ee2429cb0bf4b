/** What two routes have in common when no request can tell them apart: the method, and the path without parameter names. */
export function routeShape(method: string, path: string): string {
  return `${method} ${path.replace(/:[^/]+/g, ':')}`
}
