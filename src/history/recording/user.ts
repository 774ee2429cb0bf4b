/** Where claims and sessions have their user, the surest first. */
const NAMES = ['sub', 'user_id', 'userId', 'user', 'id']
/** Characters of a user. */
export const USER_MAX = 200

/** The user whom claims or a session are of; undefined where they name none. Claims are what a plugin has made: reading them may throw. */
export function userOf(claims: object): string | undefined {
  try {
    for (const name of NAMES) {
      const value = (claims as Record<string, unknown>)[name]
      if (typeof value === 'number' || (typeof value === 'string' && value !== ''))
        return String(value).slice(0, USER_MAX)
      if (typeof value === 'object' && value !== null && name === 'user') return userOf(value)
    }
  } catch {
    // Then nobody is known.
  }
  return undefined
}
