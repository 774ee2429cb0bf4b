import type { LogLevel } from '../../contracts/logger.ts'
import type { TrimReport } from './trimmer.ts'

/** A report of the trimmer as a log line. */
export function shownTrimReport(
  report: TrimReport,
): [level: LogLevel, message: string, fields: Record<string, unknown>] {
  const { kind, stream } = report
  switch (report.kind) {
    case 'lost': {
      const { group, missed, inHand } = report
      const message = `EVENT_BUS_STREAM_MAXLEN has cut entries of ${stream} that a subscriber had not finished: about ${missed} were never delivered`
      return ['ERROR', message, { group, missed, in_hand: inHand }]
    }
    case 'held up': {
      const { group, waiting } = report
      const message = `${waiting} entries of ${stream} wait for a subscriber that no replica has: bring it back, or delete its group (XGROUP DESTROY ${stream} ${group})`
      return ['WARNING', message, { group, waiting }]
    }
    case 'destroyed':
      return [
        'WARNING',
        `A group of ${stream} that no replica has subscribed as for 7 days was deleted`,
        { group: report.group, waiting: report.waiting },
      ]
    case 'fault':
      return ['WARNING', `${stream} is not looked after: ${report.message}`, { kind }]
  }
}
