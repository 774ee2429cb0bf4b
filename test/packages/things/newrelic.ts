import newrelic from 'newrelic'

export default (get: (name: string) => string) => {
  const url = get('TRIAL_HTTP')
  return () => newrelic.startBackgroundTransaction('weave', async () => (await fetch(`${url}/hello`)).json())
}
