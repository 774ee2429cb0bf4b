// Every published event has one contract, literal payloads fit it, and every event with a subscriber is published somewhere.
import { shown } from '../../core/errors/places.ts'
import { type Contract, misfits } from './contracts.ts'
import { type EventCall, eventCalls, isBlank, isBuiltIn, isNamed, mayBe } from './events.ts'
import { displayPath, errorAt, type Finding, warningAt } from './finding.ts'
import type { Project } from './project.ts'

const RULE = 'event-contract'

export function eventContract(project: Project): Finding[] {
  const { byEvent: contracts, faults } = project.contracts
  const findings = faults.map(({ file, message }) => {
    const event = /^The event '(.*)' has two contracts/.exec(message)?.[1]
    if (event === undefined) {
      const reason = message.replace(`${shown(file)}: `, '')
      return warningAt(RULE, file, 1, `the contracts cannot be loaded: ${reason}`)
    }
    const first = contractPlace(project, event)!
    const place = `${displayPath(first.file)}:${first.line}`
    const line = project.modules.find((module) => module.file === file)?.keyLines.get(event) ?? 1
    return errorAt(RULE, file, line, `the event '${event}' has a contract already, in ${place}`)
  })
  const allReadable = findings.every(({ severity }) => severity === 'error')
  const calls = eventCalls(project)
  const emits = calls.filter(({ kind }) => kind === 'emit')
  const published = new Set(emits.map(({ event }) => event))
  const open = emits.filter((call) => !isNamed(call))
  for (const call of calls.filter(isNamed)) {
    const { event, module, line } = call
    if (call.kind === 'emit') {
      const contract = contracts.get(event)
      if (contract) findings.push(...payloadFindings(call, contract))
      else if (allReadable && !(isBuiltIn(event) && module.domain === 'system')) {
        const wanted = `declare it in domains/${module.domain}/events.ts`
        findings.push(errorAt(RULE, module.file, line, `the event '${event}' has no contract: ${wanted}`))
      }
    } else if (!published.has(event) && !isBuiltIn(event)) {
      const message = objection(event, open)
      if (message !== undefined) findings.push(warningAt(RULE, module.file, line, message))
    }
  }
  return findings
}

/** The fault of a subscription to an event that no `publish` in the sources names. */
function objection(event: string, open: readonly EventCall[]): string | undefined {
  const plain = `nobody publishes the event '${event}' subscribed to here`
  const possible = open.filter((emit) => mayBe(emit, event))
  if (possible.some((emit) => !isBlank(emit))) return undefined
  const [blank] = possible
  if (!blank) return plain
  return `${plain}, unless ${displayPath(blank.module.file)}:${blank.line} does, where the name is only known at run time`
}

/** Where an event has its contract: a file that cannot be loaded counts by what stands in it. The first line when the file takes it from another. */
export function contractPlace({ contracts, modules }: Project, event: string) {
  const loaded = contracts.byEvent.get(event)?.file
  const found = modules.find(({ file, keyLines }) => (loaded ? file === loaded : keyLines.has(event)))
  return found && { file: found.file, domain: found.domain, line: found.keyLines.get(event) ?? 1 }
}

function payloadFindings({ event, module, payload }: EventCall, contract: Contract): Finding[] {
  if (payload?.type !== 'object') return []
  return misfits(payload, contract.schema).map(({ line, message }) =>
    errorAt(RULE, module.file, line, `the payload of '${event}' ${message}`),
  )
}
