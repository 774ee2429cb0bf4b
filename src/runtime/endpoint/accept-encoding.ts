import { withoutBlanks } from '../../core/http/header-text.ts'

/** True for a client that takes this encoding. Source: RFC 9110, section 12.5.3; without preferences among those that are taken. */
export function takes(accepted: string, encoding: string): boolean {
  for (const part of accepted.toLowerCase().split(',')) {
    const [name, ...parameters] = part.split(';').map(withoutBlanks)
    if (name === encoding) return !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  }
  return false
}
