//! Words that names and descriptions of operations are made of, by what an operation does that is
//! called so.

use std::sync::LazyLock;

use enumset::{EnumSet, EnumSetType};
use foldhash::HashMap;

use super::operation_id::{snake_case, words};

/// Effect of an operation with that word in its name, or the kind of word. A word may have several.
#[derive(EnumSetType)]
pub(crate) enum Meaning {
    /// It removes, ends, hides, moves or takes back something that exists.
    Destroys,
    /// It does so that plainly that no other word excuses it in the name of a POST.
    Harms,
    /// It changes something that exists.
    Changes,
    /// It creates, adds, sends or starts something.
    Adds,
    /// It reads or computes something.
    Reads,
    /// It opens or ends a session of the caller.
    SignsIn,
    /// A GET whose name begins with it acts.
    ActsInRead,
    /// A GET with it reads, in spite of other words.
    SaysRead,
    /// It leaves the same state, after any number of repetitions.
    Sets,
    /// It is as often a noun or an adjective as it is a verb.
    Noun,
    /// It precedes the verb: `bulkDelete`.
    BeforeVerb,
    /// It precedes the verb of a description: "This method can be used to send …", "API to verify
    /// …".
    BeforeText,
    /// A word behind it is a noun: `getByStop`.
    Preposition,
    /// It joins a second verb to the first: `getAndDelete`.
    Join,
    /// A local thing.
    Near,
}

/// Verbs that remove an object.
const REMOVES: &str = "delete remove purge drop destroy erase wipe clear empty truncate prune drain evict compact kick ban flush reset revoke \
    discard trash dispose shred scrub expunge uninstall deprovision decommission deregister dismiss invalidate forget \
    deallocate obliterate expel eject dissolve del rm overwrite";
/// Verbs that end or hide an object, or change its state.
const ENDS: &str = "close cancel terminate stop disable deactivate suspend lock archive void expire reject abort kill shutdown restart reboot \
    halt hangup deny decline refuse block quarantine freeze pause resume mute hide withdraw retire deprecate quit cease end blacklist \
    interrupt ignore snooze fence cordon demote accept approve resolve complete finalize finalise fulfill fulfil settle acknowledge \
    ack mark claim redeem consume escalate activate enable";
/// Verbs that move an object, or revert it.
const MOVES: &str = "move merge rename swap revert rollback restore undo redo resize renew transfer reassign relocate reorder migrate upgrade \
    downgrade rotate reverse rebase squash recover reopen extend failover promote replay reschedule rearrange reinstate switch toggle \
    regenerate recreate rebuild split requeue leave detach disassociate dissociate disconnect disown";
/// Actions as nouns, in which the last segments of paths are often written:
/// `POST /orders/{id}/cancellation`.
const ACTION_NOUNS: &str = "cancellation termination revocation removal deletion deactivation suspension expiration reversal rejection closure \
    restoration";
/// Verbs that are taken back, besides those of the other lists.
const TAKEN_BACK: &str = "tag flag map bind mount favorite favourite bookmark list load pair love";
/// Verbs that change an object.
const CHANGES: &str = "update set put edit save upsert replace change modify patch write configure apply sync synchronize assign confirm \
    publish release grant adjust override amend correct fix alter finish capture commit refund pin select tune tweak rescale scale \
    reconcile persist store initialise nack logout signout logoff transition associate compose deploy control verify";
/// Verbs that create, add, send or start an object.
const ADDS: &str = "create add insert append register new make generate issue post enroll enrol submit send resend redeliver notify invite email \
    mail sms ping trigger run rerun start execute exec launch begin initiate schedule request enqueue queue retry upload import record \
    report subscribe follow like star vote comment reply attach link fork clone copy duplicate backup snapshot export book buy purchase \
    place order pay charge call dial join open provision allocate reserve ask react watch raise file donate deposit draft install spawn \
    push emit broadcast track checkin checkout share simulate connect invoke process perform do handle collect refresh obtain instantiate dispatch deliver \
    crawl scan index message chat speak build sign announce forward respond answer inform remind alert seed plan prepare contact \
    nominate propose credit mint print play authenticate authorize log login signin signup";
/// Verbs that read or compute.
const READS: &str = "get list read search find query lookup count view fetch retrieve describe download preview filter validate check test \
    analyze analyse parse render estimate calculate compute convert encode decode encrypt decrypt compare match suggest detect translate \
    classify extract recognize recognise transform format tokenize tokenise evaluate eval predict score inspect identify visualize \
    visualise summarize summarise explain examine determine lint diff hash echo autocomplete geocode browse explore introspect is \
    has can exists exist return provide discover peek aggregate embed infer quote rank recommend synthesize transcribe transliterate \
    measure locate look display head interpolate plot chart moderate annotate deduplicate dedup hydrate enumerate batchget forecast";
const SIGNS_IN: &str = "login logout signin signout logoff authorize authenticate";
/// Verbs that are rarely a noun or an adjective at the beginning of a name.
const ACTS_IN_READ: &str = "create set send resend append start add insert sync synchronize execute activate enable publish register apply approve \
    save update replace put write import install configure initiate trigger run invoke copy subscribe follow like rotate launch accept \
    confirm invite notify patch edit change modify upsert assign attach grant allocate associate promote provision deregister";
const SAYS_READ: &str = "get list search status read find query fetch retrieve view count lookup show describe can is has info history download \
    check";
const HARMS: &str = "delete remove purge drop destroy reset revoke cancel terminate shutdown stop disable kill wipe erase clear unsubscribe \
    uninstall deactivate reject truncate abort flush prune evict ban kick expire overwrite restart reboot";
const SETS: &str = "set update configure put upsert replace";
const NOUNS: &str = "archive lock block order report release share post test check search import export issue log index record request message \
    copy clone draft file plan label tag rate stop drop ban kick end empty move call mail email contact book charge deposit purchase \
    comment reply vote star link follow watch map format filter query view count read score quote rank embed process open close reset \
    cancel reverse extend freeze scale control set put store show mark state void pause merge switch dump strip split upgrade transfer \
    restart renew deploy connect claim complete approve compact invite register change build";
const BEFORE_VERB: &str = "bulk batch multi admin mass async force api try just internal v1 v2 v3 v4 all my quick safe instant do process";
const BEFORE_TEXT: &str = "this the these use used using method endpoint operation api function service allows allow lets let enables you users \
    user clients client to will can be is for that which a an one or more manually automatically immediately bulk synchronously \
    asynchronously simply p b strong";
const PREPOSITIONS: &str = "for by at of in to from with on per as into via";
const JOINS: &str = "and or then";
const NEAR: &str = "memory session config local";

/// A word, and what is known of it.
pub(crate) struct KnownWord {
    pub(crate) word: String,
    pub(crate) meanings: EnumSet<Meaning>,
}

static LEXICON: LazyLock<HashMap<String, KnownWord>> = LazyLock::new(|| {
    let lists = [
        (Meaning::Destroys, REMOVES),
        (Meaning::Destroys, ENDS),
        (Meaning::Destroys, MOVES),
        (Meaning::Destroys, ACTION_NOUNS),
        (Meaning::Changes, CHANGES),
        (Meaning::Adds, ADDS),
        (Meaning::Reads, READS),
        (Meaning::SignsIn, SIGNS_IN),
        (Meaning::ActsInRead, ACTS_IN_READ),
        (Meaning::SaysRead, SAYS_READ),
        (Meaning::Harms, HARMS),
        (Meaning::Sets, SETS),
        (Meaning::Noun, NOUNS),
        (Meaning::Noun, ACTION_NOUNS),
        (Meaning::BeforeVerb, BEFORE_VERB),
        (Meaning::BeforeText, BEFORE_TEXT),
        (Meaning::Preposition, PREPOSITIONS),
        (Meaning::Join, JOINS),
        (Meaning::Near, NEAR),
    ];
    let mut lexicon: HashMap<String, KnownWord> = HashMap::default();
    let mut insert = |word: String, meaning: Meaning| {
        let new = || KnownWord {
            word: word.clone(),
            meanings: EnumSet::empty(),
        };
        lexicon.entry(word.clone()).or_insert_with(new).meanings |= meaning;
    };
    for (meaning, words) in lists {
        for word in words.split_whitespace() {
            insert(word.to_owned(), meaning);
        }
    }
    // What is done is taken back: `unlink`, `untag`, `unarchive`.
    for words in [REMOVES, ENDS, MOVES, CHANGES, ADDS, TAKEN_BACK] {
        for word in words.split_whitespace() {
            insert(format!("un{word}"), Meaning::Destroys);
        }
    }
    lexicon
});

/// Looks up a word in lower case.
pub(crate) fn entry(word: &str) -> Option<&'static KnownWord> {
    LEXICON.get(word)
}

/// Looks up a verb in any of its forms, in lower case: `deletes`, `applies` and `moving` as
/// `delete`, `apply` and `move`.
pub(crate) fn entry_of_form(word: &str) -> Option<&'static KnownWord> {
    let without = |ending: &str, instead: &str| {
        let stem = word.strip_suffix(ending)?;
        LEXICON.get(&format!("{stem}{instead}"))
    };
    let doubled = || {
        let stem = word.strip_suffix("ing")?;
        let end = stem.char_indices().next_back()?.0;
        LEXICON.get(stem.get(..end)?)
    };
    entry(word)
        .or_else(|| without("ies", "y"))
        .or_else(|| without("es", ""))
        .or_else(|| without("s", ""))
        .or_else(|| without("ing", ""))
        .or_else(|| without("ing", "e"))
        .or_else(doubled)
}

/// Returns true if a name contains a word that removes, ends or takes back something:
/// `dns_deleteZone`.
pub(crate) fn names_removal(name: &str) -> bool {
    let name = snake_case(name);
    words(&name).any(|word| entry(word).is_some_and(|word| word.is(Meaning::Destroys)))
}

impl KnownWord {
    /// Returns true if the word is a verb.
    pub(crate) fn is_verb(&self) -> bool {
        self.is(Meaning::Destroys
            | Meaning::Changes
            | Meaning::Adds
            | Meaning::Reads
            | Meaning::SignsIn)
    }

    /// Returns true if the word has one of these meanings.
    pub(crate) fn is(&self, meanings: impl Into<EnumSet<Meaning>>) -> bool {
        !self.meanings.is_disjoint(meanings.into())
    }
}
