
  const refused = await app.request('{{method}}', '{{url}}{{query}}'{{request}})
  assert.equal(refused.status, 422)
  assert.equal(refused.body.details[0].path, '{{field}}')
