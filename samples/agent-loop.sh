#!/bin/sh
# An agent: asks a model, runs the tools that it calls, and asks again until it calls none.
#
# usage: agent-loop.sh CHAT, a file of messages, one a line; it starts with what the user says and is continued.
chat=$1
while
    printf '{"model":"%s","max_tokens":4096,"tools":%s,"messages":[%s]}' \
        "${MODEL:-claude-opus-5-5}" "$(pitool declare --for anthropic)" "$(paste -sd, "$chat")" |
        curl -sS https://api.anthropic.com/v1/messages -d @- -H 'content-type: application/json' \
            -H "x-api-key: $ANTHROPIC_API_KEY" -H 'anthropic-version: 2023-06-01' |
        pitool run --output transcript > "$chat.turn" || [ $? = 1 ] || exit 2
    cat "$chat.turn" >> "$chat"
    [ "$(wc -l < "$chat.turn")" -gt 1 ] # more than what the model said: results, so ask again
do :; done
rm "$chat.turn"
