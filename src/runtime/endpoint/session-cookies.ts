/** The cookies in which this thread looks for sessions. `new Sessions` adds its own. */
export const sessionCookies = new Set<string>()
