import type { FunctionEffects, Step } from './flow/function-effects.ts'
import type { FunctionInfo } from './flow/graph.ts'
import { textOf } from './literal.ts'

/** A fault in how a function uses transactions. Plain data. */
export interface TransactionFault {
  line: number
  severity: 'error' | 'warning'
  message: string
}

/** Finds the functions of one file that publish apart from what they write, and the calls in a transaction that do not belong to it. */
export function transactionFaults(effects: FunctionEffects, lineOf: (offset: number) => number): TransactionFault[] {
  const faults = new Map<string, TransactionFault>()
  const add = (fault: TransactionFault): void => {
    const key = `${fault.line} ${fault.message}`
    if (!faults.has(key)) faults.set(key, fault)
  }
  for (const steps of effects.steps.values()) {
    const apart = publishedApart(effects, steps)
    if (apart !== undefined) add({ line: lineOf(apart.offset), severity: 'warning', message: messageOfApart(apart) })
    for (const work of steps.flatMap(({ inTransaction }) => inTransaction)) {
      for (const [{ offset }, call] of callsOutside(effects, work, new Set())) {
        add({ line: lineOf(offset), severity: 'error', message: messageOfOutside(call) })
      }
    }
  }
  const found = [...faults.values()]
  const errors = new Set(found.filter(({ severity }) => severity === 'error').map(({ line }) => line))
  // The error says as much of the publish.
  return found.filter(({ severity, line }) => severity === 'error' || !errors.has(line))
}

/** The first call that publishes, in a function with another one that writes. A call that does both by itself is a fault of what it calls. */
function publishedApart(effects: FunctionEffects, steps: readonly Step[]): Step | undefined {
  const does = steps.map((step) => ({ step, ...effects.ofStep(step) }))
  const writes = does.filter((each) => each.writes && !each.publishes)
  return does.find(
    ({ step, publishes, writes: both }) =>
      publishes && !both && writes.some((other) => !excludes(other.step.branches, step.branches)),
  )?.step
}

/** True when the two stand in different branches of one `if`. */
function excludes(some: readonly string[], others: readonly string[]): boolean {
  const indexes = new Map(others.map((branch) => branch.split(':') as [string, string]))
  return some.some((branch) => {
    const [of, index] = branch.split(':') as [string, string]
    return indexes.has(of) && indexes.get(of) !== index
  })
}

/** The calls within the function that belong to no transaction, each with the name of what is called. */
function callsOutside(effects: FunctionEffects, fn: FunctionInfo, seen: Set<FunctionInfo>): Array<[Step, string]> {
  if (seen.has(fn)) return []
  seen.add(fn)
  return (effects.steps.get(fn) ?? []).flatMap((step): Array<[Step, string]> => {
    const inner = step.callees.filter((callee) => isWithin(callee, fn))
    const { outside } = effects.ofStep({ ...step, callees: inner.length > 0 ? [] : step.callees })
    return [
      ...outside.map((call): [Step, string] => [step, call]),
      ...inner.flatMap((callee) => callsOutside(effects, callee, seen)),
    ]
  })
}

function isWithin({ node }: FunctionInfo, outer: FunctionInfo): boolean {
  return node !== outer.node && node.start >= outer.node.start && node.end <= outer.node.end
}

function messageOfApart({ event }: Step): string {
  const name = textOf(event)
  const what = name === undefined ? 'an event' : `'${name}'`
  return `${what} is published apart from the SQL that the same function writes: a crash between the two leaves one without the other`
}

function messageOfOutside(call: string): string {
  if (call === 'fetch')
    return 'fetch within a transaction holds it open, and is made again when the transaction is repeated'
  const stays = call.startsWith('event_bus.') ? 'what it sends stays' : 'what it does stays'
  return `${call} within a transaction does not belong to it: ${stays} when the transaction is rolled back`
}
