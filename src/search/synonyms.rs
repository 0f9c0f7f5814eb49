//! Words that mean the same to people who use APIs: general ones and abbreviations, none of any one API.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::stem;

/// One group in each line: any of its words may stand for any other. A phrase of several words is joined by `_`; as an
/// alternative it stands for its words.
const GROUPS: &str = "
repo repository
org organization organisation
pr pull_request
mr merge_request
dm direct_message
auth authentication authorization
authn authentication
authz authorization
config configuration settings
setting preference option configuration
env environment
app application
db database
doc document documentation
docs documentation
info information details
spec specification
admin administrator
dev developer development
prod production
msg message
pic picture image photo
image photo picture cover poster artwork
img image
vid video
addr address
acct account
num number
qty quantity
amt amount
id identifier
ids identifiers
param parameter
args arguments
attr attribute
cert certificate
creds credentials
cred credential
pwd password
pw password
perm permission
perms permissions
permission access right privilege role
role permission
var variable
vars variables
val value
desc description
cfg configuration
sub subscription
lb load_balancer
vm virtual_machine instance server
k8s kubernetes
cdn content_delivery
dns domain record
ssh key
tls certificate ssl
ssl certificate tls
ip address
cpu processor
ram memory
disk volume storage
2fa two_factor mfa
mfa multi_factor 2fa
sso single_sign_on saml
ci continuous_integration workflow pipeline build
sdk library
faq question
eta estimate
pdf file
csv export
stats statistics metrics
statistics metrics analytics insights traffic
analytics statistics insights metrics report
metric measurement statistic
ticket issue case
bug issue
issue problem ticket
task todo job item
job task run
run execution job
bill invoice billing
invoice bill
receipt invoice
fee charge
cost price billing usage
price cost plan
spend billing usage cost spending
spending billing usage cost
owe balance due
money payment balance
pay payment charge
payment charge
refund reversal money_back
money_back refund
chargeback dispute
dispute chargeback
coupon discount voucher promotion
voucher coupon promotion discount
discount coupon promotion
payout withdrawal
withdraw payout
seller merchant vendor account
vendor supplier merchant
buyer customer
customer client buyer
client customer
user person member account
member user collaborator
person people user
people person member user
folk people
human person user
employee worker staff
staff employee
boss manager
team group
group team
coworker colleague member
guest invitee visitor
visitor view traffic visit
visit view
friend contact follower
contact person address
subscriber watcher follower
watch subscribe subscription
watcher subscriber
follow subscribe
unfollow unsubscribe
notify notification alert
notification alert message
alert notification alarm warning
alarm alert
warn alert
mail email
email mail
inbox message mail
letter mail
chat conversation message
conversation thread chat
thread conversation topic
channel room
room channel
comment reply note remark
reply response answer comment
note comment
review rating feedback
rating review score rate
feedback review
vote rating
emoji reaction
reaction emoji like
like favorite
favorite star like bookmark
favourite favorite star bookmark
bookmark favorite star
label tag
tag label
category type genre
genre category
kind type
folder directory
directory folder
file document content blob
document file
attachment file asset
attach add upload
upload import
download export archive
backup snapshot
snapshot backup
copy clone duplicate
clone copy
duplicate copy clone
fork copy
photo picture image
picture image photo
logo image brand
icon image avatar
avatar picture image
film movie
movie film
show series tv
series tv show
actor cast credits
actress cast credits
star cast
cast credits
director crew credits
directed crew credits
song track
track song
artist musician singer
band artist
album record
playlist queue
car vehicle
vehicle car
hotel accommodation lodging
flight trip
trip journey travel
store shop
shop store
cart basket
basket cart
order purchase
purchase order buy
buy purchase order
bought purchase item
goods product item
product item goods
item product entry
stock inventory
inventory stock
parcel package shipment
shipment delivery shipping
ship deliver shipment
warehouse location
place location
location place address region
region location zone
area region zone
country nation
city town
zip postal_code
street address
phone telephone mobile
telephone phone
website site url homepage
homepage website url site
site website
link url
url link uri address
webpage page
webhook hook callback
hook webhook
event activity history
activity event history
history log audit changes
log history audit event
logs log
audit log
calendar event schedule
meeting event appointment
appointment booking event
booking reservation
reservation booking
schedule calendar plan cron
cron schedule timer
timer schedule
nightly schedule
deadline due_date
due_date deadline
reminder alert notification
release version
version release revision
revision version
commit revision change
change update modify
diff compare comparison
branch ref
merge combine
server instance host machine
machine instance server
host server
instance server
container image
cluster node
firewall rule
network vpc
secret credential key token
token key credential
key token secret
credential secret
password secret credential
login sign_in session
log_in login session
sign_in login session
logout sign_out
sign_up register signup
signup register onboarding
register create
onboard signup register
session login
ban block suspend
block ban
unban unblock
unblock block
kick remove
fire remove delete
invite invitation
invitation invite
join accept
approve accept
accept approve
agree accept
reject decline deny
deny reject decline
decline reject
delete remove destroy
remove delete
destroy delete
erase delete
wipe delete clear
discard delete
drop delete
purge delete clear
clear delete reset
get_rid_of delete remove
take_away remove revoke
cancel stop abort terminate
stop cancel disable halt
end cancel stop
abort cancel
terminate cancel end
kill terminate stop
undo revert restore rollback
revert undo rollback
roll_back rollback revert
restore recover undelete
recover restore
disable deactivate stop
deactivate disable
enable activate
activate enable
turn_on enable
turn_off disable power_off
switch_on enable
switch_off disable
power_off shutdown stop
power_on start
shut_down shutdown power_off
start begin launch run
launch start deploy
deploy deployment release
begin start
restart reboot
reboot restart
resize scale
scale resize
grow resize scale
expand resize
suspend pause
pause suspend
resume unpause continue
continue resume
hide archive
archive hide read_only
read_only archive
publish release
make create
create add new
add create
new create
build create
open create
set_up create configure
issue_a create
edit update modify
modify update edit
update edit change
alter update
fix update
adjust update
replace update
rename name update
move transfer
transfer move
promote upgrade
upgrade promote
downgrade plan
extend prolong
postpone update delay
send deliver
forward redirect
redirect forward
share permission access
assign allocate
assignee assigned
grant give access
revoke remove
verify validate check confirm
check verify validate status
validate verify check
confirm verify
prove verify verification
identity verification
status state
state status
health status
progress status
finished status completed
done completed finished
pending open
open pending
closed resolved
active enabled current
current active
latest newest recent
newest latest
recent latest
popular trending top
top popular best
best top
trending popular trend
similar related recommendation
related similar
recommend recommendation similar
suggestion recommendation
search find query lookup
find search
look_up search find
lookup search
query search
filter search
count total number
total count sum
sum total
size storage
quota limit usage
limit quota restriction
restrict limit restriction
restriction limit
rule policy
policy rule
usage consumption
bandwidth traffic
graph chart metrics
graphic image
report summary
summary overview report
overview summary
dashboard overview
preview draft
draft unpublished
pin sticky
stick pin
sticky pin
lock freeze
unlock unfreeze
freeze lock
rotate renew regenerate
renew extend rotate
regenerate rotate reset
expire expiry
expiry expiration
birthday biography details
born birthday details
text body content
content body text
title name
name title
nickname alias
alias nickname
job_posting vacancy
vacancy job
question query
survey form questionnaire
form survey
deal opportunity
lead prospect
company business organization
business company
firm company
headquarters company
brand company
ad advertisement campaign
ads advertisement campaign
campaign ad
template layout
theme appearance style
language locale
locale language
translate translation
subtitle caption
caption subtitle
currency exchange
tax vat duty
vat tax
balance amount
deposit payment
subscription plan
trial subscription
seat license quantity
license seat
script function code
function lambda
model ai
prompt instruction
dataset data
data_source source
knowledge_base document
";

/// The other words that a word, or a phrase joined by `_`, may stand for: each alternative is one or more stems.
type Alternatives = HashMap<String, Vec<Vec<String>>>;

static TABLE: LazyLock<Alternatives> = LazyLock::new(|| {
    let mut table: Alternatives = HashMap::new();
    for line in GROUPS.lines() {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        let alternatives = words.map(|word| word.split('_').map(|part| stem(part).into_owned()).collect());
        let known = table.entry(stems_of(key)).or_default();
        for alternative in alternatives {
            if !known.contains(&alternative) {
                known.push(alternative);
            }
        }
    }
    table
});

fn stems_of(key: &str) -> String {
    key.split('_').map(stem).collect::<Vec<_>>().join("_")
}

/// What a stem, or stems of a phrase joined by `_`, may stand for.
#[must_use]
pub(crate) fn alternatives_of(stem: &str) -> &'static [Vec<String>] {
    TABLE.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_knows_abbreviations_and_phrases() {
        let has = |key: &str, word: &str| alternatives_of(key).iter().any(|stems| stems.join(" ") == stem(word));
        assert!(has("repo", "repository") && has("turn_off", "disable") && has("bill", "invoice"));
        assert!(alternatives_of("pr").contains(&vec!["pull".to_owned(), "request".to_owned()]));
        assert!(alternatives_of("xyzzy").is_empty());
    }
}
