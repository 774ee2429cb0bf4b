import { answerOf, sureButton } from './dead-letter-actions.js'
import { clock, clockSeconds, count, duration, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { addressOfJob, linkToRequest, whenAndAgo } from './page.js'
import { empty, facts } from './parts.js'
import { fetchJson } from './process.js'
import { View } from './view.js'

/** Seconds between two looks while the section is shown. */
const LOOK_SECONDS = 2
/** Milliseconds for which a notice of success stays. */
const NOTICE_MS = 6000

const OUTCOMES = {
  running: ['accent', 'running'],
  done: ['ok', 'done'],
  failed: ['bad', 'failed'],
  unfinished: ['bad', 'not finished: its process ended'],
}
const TONES = { WARNING: 'warn', ERROR: 'bad' }

/** The jobs: when each runs next, what came of its last runs, and a button that runs it now. */
export class JobsView extends View {
  subject = 'job'
  #report = null
  #isMissing = false
  /** The job whose runs are shown: `<plugin>/<name>`; null: none. */
  #chosen = null
  /** Its runs; null while they are not known. */
  #runs = null
  #seconds = 0
  #isAsking = false

  constructor(page) {
    super(page, 'Jobs', 'jobs')
  }

  onHello() {
    void this.#look()
  }

  onSecond() {
    if (this.isShown && ++this.#seconds % LOOK_SECONDS === 0) void this.#look()
  }

  show() {
    super.show()
    void this.#look()
  }

  reveal(job) {
    this.#chosen = job
    this.#runs = null
    this.draw()
    void this.#readRuns()
    return true
  }

  async #look() {
    if (!this.element.isConnected || this.#isAsking) return
    this.#isAsking = true
    const [report] = await Promise.all([fetchJson('/system/jobs'), this.#readRuns()])
    this.#isAsking = false
    this.#isMissing = report === null
    this.#report = report ?? this.#report
    this.draw()
  }

  async #readRuns() {
    const job = this.#chosen
    if (job === null) return
    const answer = await fetchJson(`/system/jobs/runs?job=${encodeURIComponent(job)}`)
    // Another one may be chosen by now.
    if (job !== this.#chosen) return
    this.#runs = answer?.runs ?? []
    this.draw()
  }

  async #runNow(job, button) {
    button.disabled = true
    const { refusal, data } = await answerOf('/system/jobs/run', 'POST', { job })
    button.disabled = false
    const text = refusal ?? `begun in process ${data.replica}`
    this.page.notices.tell('job', refusal === null ? 'info' : 'bad', `${job}: ${text}`, true)
    if (refusal === null) setTimeout(() => this.page.notices.tell('job', 'info', null), NOTICE_MS)
    await this.#look()
  }

  content() {
    const report = this.#report
    if (report === null) {
      const why = this.#isMissing ? 'The plugin that lists them (manage-jobs) is not installed.' : 'Looking …'
      return html`<div class="card"><p class="empty">${why}</p></div>`
    }
    if (report.jobs.length === 0) {
      const hint = 'A plugin registers one with scheduler.cron, scheduler.every or scheduler.at.'
      return html`<div class="card">${empty('No plugin has a job', hint)}</div>`
    }
    const chosen = report.jobs.find(({ job }) => job === this.#chosen)
    return html`
      <div class="card scrolls">
        <table class="handlers stacked job-list">
          <thead><tr>
            <th scope="col">Job</th><th scope="col">Runs</th><th scope="col">Next run</th><th scope="col">Last run</th><th scope="col"><span class="unseen">Run now</span></th>
          </tr></thead>
          <tbody>${report.jobs.map((job) => this.#row(job))}</tbody>
        </table>
        ${report.has_history ? nothing : html`<p class="note">Runs are not kept: start the process with HISTORY_ENABLED=true.</p>`}
      </div>
      ${chosen === undefined ? nothing : this.#detail(chosen)}`
  }

  #row(report) {
    const { job, plugin, name, schedule, last_run: last } = report
    const run = { label: `Run ${job} now`, text: 'Run now', question: 'Run it now?' }
    return html`<tr>
      <th scope="row"><a href=${addressOfJob(job)} aria-current=${job === this.#chosen ? 'true' : nothing}><code>${name}</code></a> <span class="muted">${plugin}</span></th>
      <td data-label="Runs">${scheduleText(schedule)}</td>
      <td data-label="Next run">${nextText(report)}</td>
      <td data-label="Last run"><span>${last === null ? html`<span class="muted">–</span>` : outcomeOf(last)}</span></td>
      <td>${sureButton(run, (button) => this.#runNow(job, button))}</td>
    </tr>`
  }

  #detail(report) {
    const { job, upcoming } = report
    const runs = this.#runs
    return html`
      <section class="card job-detail" aria-label=${`Runs of ${job}`}>
        <h2>${job}</h2>
        ${facts([['Next hour', upcoming && upcomingText(upcoming)]])}
        ${runs === null ? html`<p class="note">Looking …</p>` : runs.length === 0 ? html`<p class="note">No run is kept.</p>` : html`<ol class="runs">${runs.map(runEntry)}</ol>`}
      </section>`
  }
}

/** When a job runs, and by whose clocks. */
export function scheduleText({ kind, expression, timeZone = 'UTC', everyMs, atMs }) {
  if (kind === 'cron') return `${expression} ${timeZone}`
  if (kind === 'every') return `every ${duration(everyMs)}`
  return atMs === undefined ? '' : `once, ${clockSeconds(new Date(atMs).toISOString())}`
}

function nextText({ next_run: next, upcoming, fires_here: isHere, running }) {
  if (running) return 'running'
  const more = upcoming && upcoming.count > 1 ? `, ${countOf(upcoming)} in the next hour` : ''
  if (next !== null) return `${clockSeconds(next)}${more}`
  if (isHere) return 'does not run again'
  const [first] = upcoming?.runs ?? []
  return first === undefined ? 'in another process' : `${clockSeconds(first)}${more}, in another process`
}

const countOf = ({ count: number, more }) => `${more ? 'at least ' : ''}${count(number)}`

function upcomingText({ runs, count: number, more }) {
  if (number === 0) return 'no run'
  const left = number - runs.length
  return `${runs.map((run) => clock(run).slice(0, 8)).join(' · ')}${left > 0 || more ? ` and ${more ? 'at least ' : ''}${count(Math.max(1, left))} more` : ''}`
}

function outcomeOf({ outcome, began_at: at, duration_ms: ms }) {
  const [tone, text] = OUTCOMES[outcome]
  return html`<span class="state" data-tone=${tone}><span class="dot"></span>${text}${ms === null ? '' : ` in ${duration(ms)}`}</span> ${whenAndAgo(at, 'muted')}`
}

/** One run with what it has logged. */
function runEntry(run) {
  const { id, error, thread, replica, asked_by: askedBy, logs, logs_left_out: leftOut } = run
  const where = thread === null ? '' : thread === 'primary' ? ', primary' : `, lane ${thread}`
  return html`<li>
    <p>${outcomeOf(run)} <span class="muted">process ${replica}${where} · ${askedBy === null ? 'by its schedule' : `asked for by ${askedBy}`}</span> ${logs === null ? nothing : linkToRequest(id, 'all that it did')}</p>
    ${error === null ? nothing : html`<code class="wrap is-bad">${error}</code>`}
    ${
      logs === null
        ? html`<p class="note">What it did and logged is in the history of that process.</p>`
        : logs.length === 0
          ? nothing
          : html`<ol class="run-logs">${logs.map(
              ({ at, level, message }) =>
                html`<li data-tone=${TONES[level] ?? nothing}><span class="muted">${clock(at)} ${level}</span> <span class="log-message">${message}</span></li>`,
            )}</ol>`
    }
    ${leftOut > 0 ? html`<p class="note">${plural(leftOut, 'further call')} left out.</p>` : nothing}
  </li>`
}
