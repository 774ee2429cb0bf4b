import { count, duration, plural } from './format.js'
import { html, nothing } from './lit-html.js'
import { isIll } from './tools.js'
import { KeyedList } from './view.js'

/** Notices of faults and of missed events, on top of the page: each stays until its cause is gone, or until it is closed. */
export class Notices {
  #list = new KeyedList('notices')
  element = this.#list.element
  #notices = new Map()

  /** Shows a notice in place of the last one of that subject. @param text null removes it */
  tell(subject, kind, text, canClose = false) {
    if (text === null) this.#notices.delete(subject)
    else this.#notices.set(subject, { kind, text, canClose })
    this.#list.show([...this.#notices].map((notice) => this.#entry(notice)))
  }

  #entry([subject, { kind, text, canClose }]) {
    const close = () => this.tell(subject, kind, null)
    return {
      key: subject,
      attributes: { class: 'notice', 'data-tone': kind, 'data-subject': subject },
      content: html`<p>${text}</p>${canClose ? html`<button class="quiet" type="button" aria-label="Close this notice" @click=${close}>Close</button>` : nothing}`,
    }
  }

  /** @param {{ status?: import('#heddle').SystemDump, readiness?: import('#heddle').Readiness }} frame what has not changed is left out */
  tellHealth({ status, readiness }) {
    if (readiness !== undefined) {
      this.tell('ready', 'warn', readiness.ready ? null : `Not ready: ${readiness.reasons.join(', ')}`)
    }
    if (status === undefined) return
    const { tools, plugins, reload } = status
    const ill = Object.entries(tools).filter(([, each]) => isIll(each))
    this.tell(
      'tools',
      'bad',
      ill.length === 0
        ? null
        : ill.map(([name, each]) => `Tool ${name} is ${each.status}: ${each.message ?? 'no message'}`).join('\n'),
    )
    const dead = Object.entries(plugins).filter(([, each]) => each.status !== 'OK')
    this.tell(
      'plugins',
      'bad',
      dead.length === 0
        ? null
        : dead.map(([name, each]) => `${name} is dead: ${'error' in each ? each.error : ''}`).join('\n'),
    )
    this.tell('reload', 'bad', reload === undefined || reload.ok ? null : `The old code still runs: ${reload.error}`)
  }

  /** Shows how many events were missed between two connections, by the process's counters. */
  tellGap({ missed, shown, isRestart, forMs }) {
    const away = forMs < 1000 ? '' : ` for ${duration(Math.round(forMs / 1000) * 1000).replace('.0 s', ' s')}`
    const text = isRestart
      ? `The process has restarted; the page was disconnected${away}. Missed ${plural(missed, 'event')} of the new process, and the last events of the old one.`
      : missed === 0
        ? `The connection was lost${away}. Missed no events: ${shown === 0 ? 'there were none' : `all ${count(shown)} are shown`}.`
        : `The connection was lost${away}. Missed ${plural(missed, 'event')}; the last ${count(shown)} are shown.`
    this.tell('gap', missed > 0 || isRestart ? 'warn' : 'info', text, true)
  }
}
