const PREFIX = 'heddle:state:'
const DEFAULT = `${PREFIX}default:`

/**
 * What every key of a namespace begins with: `heddle:state:<namespace>:`, the colons and percent signs of the namespace as `%3A` and `%25`,
 * so that it ends at the first colon. The key follows as it is.
 */
export function prefixOf(namespace: string): string {
  if (namespace === 'default') return DEFAULT
  return `${PREFIX}${namespace.replace(/[%:]/g, (char) => (char === ':' ? '%3A' : '%25'))}:`
}

/** The glob pattern that matches what begins with a text, and nothing else. */
export function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^-]/g, '\\$&')}*`
}
