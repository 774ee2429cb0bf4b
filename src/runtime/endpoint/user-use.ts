import { REACHES_ALL } from './header-use.ts'

/** Up to the first parameter. */
const HEAD = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*(?:#?[\w$]+\s*)?\(/
/** `data => …` has no other parameter. */
const LONE = /^(?:async\s+)?[\w$]+\s*=>/
const NAME = /^[\w$]+$/
/** Fields by their names alone. */
const FIELDS = /^\{[\w$\s,:]*\}$/

/**
 * False when it is certain that a function does not read `user` of the context that it gets, and hands that to nobody: then who calls need not
 * be found out for it.
 * @param at which of its parameters the context is
 */
export function mayReadUser(reader: unknown, at: number): boolean {
  const source = Function.prototype.toString.call(reader)
  if (REACHES_ALL.test(source)) return true
  const head = HEAD.exec(source)?.[0]
  if (head === undefined) return at === 0 || !LONE.test(source)
  const parameters = parametersOf(source.slice(head.length))
  if (parameters === null) return true
  const context = parameters[at]
  if (context === undefined) return false
  if (FIELDS.test(context)) return /\buser\b/.test(context)
  if (!NAME.test(context)) return true
  const body = source.slice(source.indexOf(')', head.length))
  const uses = body.matchAll(
    new RegExp(`(?<![\\w$]|[^.]\\.)${context.replaceAll('$', '\\$')}(?![\\w$])(\\.[\\w$]+)?`, 'g'),
  )
  return [...uses].some(([, field]) => field === undefined || field === '.user')
}

/** True when it is certain that a function calls `commit` of the context that it gets as its second parameter. */
export function callsCommit(handler: (...args: never[]) => unknown): boolean {
  const source = Function.prototype.toString.call(handler)
  const head = HEAD.exec(source)?.[0]
  const context = head === undefined ? undefined : parametersOf(source.slice(head.length))?.[1]
  if (context === undefined) return false
  if (FIELDS.test(context)) return /\bcommit\b/.test(context)
  return NAME.test(context) && new RegExp(`(?<![\\w$.])${context.replaceAll('$', '\\$')}\\.commit\\s*\\(`).test(source)
}

/** The parameters, of names and of fields by their names; null where they are anything else. */
function parametersOf(rest: string): string[] | null {
  const list = /^[\w$\s,:{}]*(?=\))/.exec(rest)?.[0]
  if (list === undefined || /\{[^{}]*\{/.test(list)) return null
  const parts = list.match(/\{[^{}]*\}|[^,{}]+/g) ?? []
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}
