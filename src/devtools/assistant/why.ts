import type { BlackBox } from '../../contracts/registry.ts'
import type { DeathPart, RequestDetail, WorkPart } from '../../contracts/requests.ts'

/** Frames of a stack that are shown: the innermost are the plugin's. */
const FRAMES_MAX = 8

/** What is wrong with a request, one sentence each, the cause before what followed; empty when nothing is. */
export function reasonsOf(request: RequestDetail): string[] {
  const reasons: string[] = []
  for (const part of request.parts) {
    if (part.type === 'death') reasons.push(deathReason(part))
    else if (part.type === 'work') reasons.push(...workReasons(part))
    else if (part.isGivenUp) reasons.push(`${part.group} gave up ${part.event}: it is a dead letter`)
  }
  if (request.state === 'unfinished') reasons.push('The process ended before it was answered')
  const { status, error } = request
  if (reasons.length === 0 && request.failed) reasons.push(error ?? `It was answered with ${status}`)
  if (reasons.length === 0 && status !== null && status >= 400) {
    reasons.push(`It was refused with ${status}: no code failed; the answer says why`)
  }
  return reasons
}

function deathReason({ lane, message, plugin, handler, line }: DeathPart): string {
  const where = [
    handler === null ? '' : ` in ${handler}`,
    plugin === null ? '' : ` of ${plugin}`,
    line === null ? '' : ` at ${line}`,
  ]
  return `Lane ${lane} died: ${message}${where.join('')}`
}

function workReasons({ name, event, attempt, error, calls }: WorkPart): string[] {
  const failed = calls.filter((call) => call.error !== undefined)
  const causes = failed.map(
    ({ tool, method, error: message, statement }) =>
      `${tool}.${method} failed in ${name}: ${message}${statement === undefined ? '' : ` (${statement})`}`,
  )
  if (error === undefined) return causes
  const what = event === undefined ? name : `${name}, attempt ${attempt ?? 1} at ${event},`
  const frames = error.stack.split('\n').filter((line) => /^\s+at /.test(line))
  return [...causes, [`${what} threw ${error.type}: ${error.message}`, ...frames.slice(0, FRAMES_MAX)].join('\n')]
}

/** A death without its steps, which are 256. */
export function shortDeath({ steps, ...box }: BlackBox) {
  return { ...box, last_steps: steps.slice(-5) }
}
