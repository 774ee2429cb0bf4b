/** Why the path of a request cannot be routed, for its client; null when it can. */
export function faultOfPath(path: string): string | null {
  if (path.includes('%')) {
    let decoded: string
    try {
      decoded = decodeURIComponent(path)
    } catch {
      return 'The path has invalid percent-encoding'
    }
    if (decoded.includes('\0')) return 'The path has a NUL'
  } else if (path.includes('\0')) return 'The path has a NUL'
  if (path.includes('\ufffd')) return 'The path is not valid UTF-8'
  return null
}
